import { type AbortSignalLike, ContentionError } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'

/** How long an answer is waited for. */
export interface Patience {
  readonly clock: Clock
  /** All in all, from now. */
  readonly timeoutMs: number
  /** Whether somebody awaits the answer, so that the process must not end meanwhile. */
  readonly keepAlive: boolean
  readonly giveUp?: GiveUp | undefined
}

/** An answer that nobody wants any more, and that still says what became of the call. */
export interface GiveUp {
  readonly signal: AbortSignalLike
  /** How much longer it is waited for once the signal aborts. */
  readonly graceMs: number
  /** Tells the other side. */
  readonly onAbort?: () => void
}

/**
 * The answer of `call`, or a `ContentionError` when there is none in time: then nothing is known,
 * and the call may have happened. No call of the client's waits on anybody without this bound.
 */
export function answerWithin<T>(
  call: Promise<T>,
  { clock, timeoutMs, keepAlive, giveUp }: Patience,
  onTimeout?: () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onTime = (): void => {
      stop()
      onTimeout?.()
      reject(new ContentionError('no answer in time: the call may have happened'))
    }
    let timer = clock.setTimer(timeoutMs, onTime, { keepAlive })
    const onAbort = (): void => {
      timer.cancel()
      timer = clock.setTimer(giveUp?.graceMs ?? 0, onTime, { keepAlive })
      giveUp?.onAbort?.()
    }
    const stop = (): void => {
      timer.cancel()
      giveUp?.signal.removeEventListener('abort', onAbort)
    }
    if (giveUp?.signal.aborted === true) onAbort()
    else giveUp?.signal.addEventListener('abort', onAbort, { once: true })
    call.then(
      (answer) => {
        stop()
        resolve(answer)
      },
      (error: unknown) => {
        stop()
        reject(error as Error)
      },
    )
  })
}
