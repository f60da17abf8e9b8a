import type { LockHandle, LockLostError } from '@dlock/lock-api'
import type { HeldLock } from './held-lock.ts'
import type { Reports } from './reports.ts'

/**
 * Called once for each lock that is lost, soon after. Do not block in it. What it throws, or what
 * its promise rejects with, goes to `onError`.
 *
 * @param handle as it was last handed out or renewed
 */
export type LockLostListener = (handle: LockHandle, error: LockLostError) => unknown

/** A lost lock whose holder never lets go is remembered for later listeners; so many of them. */
const REMEMBERED = 1_000

/** Who is to be told of losses, and which losses a late listener has still to be told of. */
export class Losses {
  readonly #reports: Reports
  readonly #listeners = new Set<{ readonly listener: LockLostListener }>()
  /** Told of, and not let go of by their holders yet. */
  readonly #standing = new Set<HeldLock>()

  constructor(reports: Reports) {
    this.#reports = reports
  }

  /** `listener` hears at once of the losses that stand. @returns how to stop listening */
  listen(listener: LockLostListener): () => void {
    const entry = { listener }
    this.#listeners.add(entry)
    for (const lock of this.#standing) this.#tell(listener, lock)
    return () => void this.#listeners.delete(entry)
  }

  /** Tells everybody who listens. */
  announce(lock: HeldLock): void {
    this.#standing.add(lock)
    if (this.#standing.size > REMEMBERED) {
      const [oldest] = this.#standing
      if (oldest !== undefined) this.#standing.delete(oldest)
    }
    // One that is added by another hears of this loss from `listen`.
    const listeners = [...this.#listeners]
    for (const { listener } of listeners) this.#tell(listener, lock)
  }

  /** Its holder has let go: nobody has to be told any more. */
  forget(lock: HeldLock): void {
    this.#standing.delete(lock)
  }

  #tell(listener: LockLostListener, lock: HeldLock): void {
    if (lock.loss === undefined) return
    const { handle, loss } = lock
    this.#reports.guard('listener', () => listener(handle, loss))
  }
}
