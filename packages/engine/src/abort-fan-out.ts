import type { AbortSignalLike } from '@dlock/lock-api'

interface Watched {
  readonly calls: Set<() => void>
  readonly listener: () => void
}

/**
 * One listener per signal, however many calls wait on it: a hundred listeners on one signal would
 * be reported as a leak by the runtime, and rightly so if one of them stayed (P-22).
 */
export class AbortFanOut {
  readonly #watched = new WeakMap<AbortSignalLike, Watched>()

  /**
   * Calls `call` once when `signal`, not aborted so far, aborts.
   *
   * @param call a function of its own for each call of `on`
   * @returns how to forget it; after the last one the signal holds no listener of ours
   */
  on(signal: AbortSignalLike, call: () => void): () => void {
    const watched = this.#watched.get(signal) ?? this.#watch(signal)
    watched.calls.add(call)
    return () => {
      watched.calls.delete(call)
      if (watched.calls.size === 0) this.#forget(signal, watched)
    }
  }

  #watch(signal: AbortSignalLike): Watched {
    const calls = new Set<() => void>()
    const listener = (): void => {
      this.#forget(signal, watched)
      for (const call of calls) call()
    }
    const watched = { calls, listener }
    this.#watched.set(signal, watched)
    signal.addEventListener('abort', listener)
    return watched
  }

  #forget(signal: AbortSignalLike, watched: Watched): void {
    // Forgotten twice, perhaps after the next one began: that one stays.
    if (this.#watched.get(signal) !== watched) return
    signal.removeEventListener('abort', watched.listener)
    this.#watched.delete(signal)
  }
}
