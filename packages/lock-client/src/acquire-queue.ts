import { type AbortSignalLike } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'

/**
 * The line in front of each key, between the tasks of one session: first in, first out, and only
 * its head talks to the service. The service could not keep two of them apart, because a session
 * that asks again for what it holds gets the same grant (decision 3). A task keeps its place at the
 * head for as long as it holds the lock.
 */
export class AcquireQueue {
  readonly #clock: Clock
  /** The head first. A key without a line is nobody's. */
  readonly #lines = new Map<string, Set<Place>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Waits up to `maxWaitMs` for a turn.
   *
   * @returns `undefined` when the wait ended while another task of this session had the key
   * @throws the signal's reason
   */
  async enter(key: string, maxWaitMs: number, signal: AbortSignalLike): Promise<Turn | undefined> {
    const line = this.#lines.get(key)
    if (line !== undefined) {
      return maxWaitMs === 0 ? undefined : this.#wait(key, line, maxWaitMs, signal)
    }
    const place: Place = { admit() {} }
    this.#lines.set(key, new Set([place]))
    return this.#turn(key, place)
  }

  #wait(
    key: string,
    line: Set<Place>,
    maxWaitMs: number,
    signal: AbortSignalLike,
  ): Promise<Turn | undefined> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        timer.cancel()
        signal.removeEventListener('abort', onAbort)
      }
      const leave = (): void => {
        settle()
        line.delete(place)
      }
      const place: Place = {
        admit: () => {
          settle()
          resolve(this.#turn(key, place))
        },
      }
      const onAbort = (): void => {
        leave()
        reject(signal.reason as Error)
      }
      const onTime = (): void => {
        leave()
        resolve(undefined)
      }
      const timer = this.#clock.setTimer(maxWaitMs, onTime, { keepAlive: true })
      signal.addEventListener('abort', onAbort, { once: true })
      line.add(place)
    })
  }

  #turn(key: string, place: Place): Turn {
    return new Turn(() => {
      const line = this.#lines.get(key)
      if (line?.delete(place) !== true) return
      const [next] = line
      if (next === undefined) this.#lines.delete(key)
      else next.admit()
    })
  }
}

/** A task in line; the head's turn has begun. */
interface Place {
  admit(): void
}

/** A task's turn at a key: it asks the service, holds the lock, and leaves. */
export class Turn {
  readonly #onLeave: () => void

  constructor(onLeave: () => void) {
    this.#onLeave = onLeave
  }

  /** The next in line has its turn at once. Idempotent. */
  leave(): void {
    this.#onLeave()
  }
}
