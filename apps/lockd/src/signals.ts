import { type Clock, systemClock } from '@dlock/system'

/** npm passes on a Ctrl-C that the terminal has delivered already. */
const SAME_REQUEST_MS = 500

export interface StopRequest {
  /** Resolves with the first signal that asks to stop. */
  readonly asked: Promise<NodeJS.Signals>
}

/** From now on SIGINT and SIGTERM ask to stop; another one calls `hurry`. */
export function onStopRequest(
  hurry: () => void,
  source: NodeJS.EventEmitter = process,
  clock: Clock = systemClock,
): StopRequest {
  let firstAt: bigint | undefined
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    const heard = (signal: NodeJS.Signals): void => {
      const now = clock.monotonicNanos()
      firstAt ??= now
      if (now - firstAt > BigInt(SAME_REQUEST_MS) * 1_000_000n) hurry()
      resolve(signal)
    }
    source.on('SIGINT', heard).on('SIGTERM', heard)
  })
  return { asked }
}
