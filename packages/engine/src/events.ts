import type { LockEvent } from './lock-event.ts'

/** Tells every listener, in order, in the turn in which it happened. */
export class Events {
  readonly #listeners = new Set<(event: LockEvent) => void>()

  /** False when nobody listens: then no event needs to be made. */
  get heard(): boolean {
    return this.#listeners.size > 0
  }

  /** @returns how to stop listening */
  on(listener: (event: LockEvent) => void): () => void {
    // A wrapper of its own, so that one function may listen twice.
    const entry = (event: LockEvent): void => listener(event)
    this.#listeners.add(entry)
    return () => {
      this.#listeners.delete(entry)
    }
  }

  emit(event: LockEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event)
      } catch {
        // A listener's bug must not reach a caller who was just granted a lock.
      }
    }
  }
}
