import { type Clock, systemClock } from '@dlock/system'
import { type DestinationStream, destination, type Logger, pino } from 'pino'

/**
 * One JSON object a line: `time`, `level`, `service`, `event`. Written at once: what a process did
 * just before it was killed is what these logs are read for.
 */
export function createLog(
  service: string,
  options: { readonly stream?: DestinationStream; readonly clock?: Clock } = {},
): Logger {
  const clock = options.clock ?? systemClock
  return pino(
    {
      base: { service },
      timestamp: () => `,"time":"${clock.now().toISOString()}"`,
      formatters: { level: (level) => ({ level }) },
    },
    options.stream ?? destination({ sync: true }),
  )
}
