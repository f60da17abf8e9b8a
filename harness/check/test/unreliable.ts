import { ContentionError } from '@dlock/lock-api'
import type { Clock, Random } from '@dlock/system'
import type { RecordedCalls } from '@dlock/traffic'

export interface Unreliability {
  readonly clock: Clock
  readonly random: Random
  /** The share of calls that fail. */
  readonly faults: number
}

/** Of a call's way there, and of its way back. */
const LONGEST_WAY_MS = 10
/** Of a request that was given up, until it arrives after all. */
const LATEST_MS = 200

/**
 * A network between a client and its service. Of the calls that fail, a third never arrives, a
 * third loses its answer, and a third arrives when nobody waits for it any more.
 */
export function unreliable(calls: RecordedCalls, network: Unreliability): RecordedCalls {
  const { clock, random, faults } = network
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => void clock.setTimer(ms, resolve, { keepAlive: true }))
  const send = async <T>(call: () => Promise<T>): Promise<T> => {
    const fate = random.next()
    await pause(random.next() * LONGEST_WAY_MS)
    if (fate < faults) {
      const late = random.next() * LATEST_MS
      if (fate < faults / 3)
        void pause(late)
          .then(call)
          .catch(() => undefined)
      else if (fate < (2 * faults) / 3) await call()
      throw new ContentionError('no answer in time')
    }
    const answer = await call()
    await pause(random.next() * LONGEST_WAY_MS)
    return answer
  }
  return {
    acquire: (...asked) => send(() => calls.acquire(...asked)),
    renew: (...asked) => send(() => calls.renew(...asked)),
    release: (...asked) => send(() => calls.release(...asked)),
    forceRevoke: (...asked) => send(() => calls.forceRevoke(...asked)),
  }
}
