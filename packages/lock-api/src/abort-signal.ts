/**
 * The part of the standard `AbortSignal` that the contracts need. Plain ECMAScript has no
 * `AbortSignal`, and this package may know neither the DOM nor Node, so it names the shape;
 * every real `AbortSignal` fits it.
 */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
  throwIfAborted(): void
}
