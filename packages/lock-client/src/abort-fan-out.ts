import type { AbortSignalLike } from '@dlock/lock-api'

/**
 * One listener per signal of the application, however many calls follow it: a hundred listeners on
 * one signal would be reported by the runtime as a leak (P-22).
 */
export class AbortFanOut {
  readonly #followed = new WeakMap<AbortSignalLike, Followed>()

  /**
   * Aborts `call` with `signal`'s reason when that aborts, or has.
   *
   * @returns how to stop; after the last one, the signal has no listener of ours
   */
  follow(signal: AbortSignalLike, call: AbortController): () => void {
    if (signal.aborted) {
      call.abort(signal.reason)
      return () => {}
    }
    const { calls, onAbort } = this.#followed.get(signal) ?? this.#listen(signal)
    calls.add(call)
    return () => {
      if (!calls.delete(call) || calls.size > 0) return
      signal.removeEventListener('abort', onAbort)
      this.#followed.delete(signal)
    }
  }

  #listen(signal: AbortSignalLike): Followed {
    const calls = new Set<AbortController>()
    const onAbort = (): void => {
      for (const call of calls) call.abort(signal.reason)
    }
    const followed = { calls, onAbort }
    this.#followed.set(signal, followed)
    signal.addEventListener('abort', onAbort, { once: true })
    return followed
  }
}

interface Followed {
  readonly calls: Set<AbortController>
  readonly onAbort: () => void
}
