import process from 'node:process'
import type { kinds } from '@dlock/messages'
import type { Logger } from 'pino'
import { STEPS, type Step } from './section.ts'

/** Where the SIGSTOP experiment wants a worker to be stopped, or a recovery test to be killed. */
export type HoldPoint = 'none' | Step

const POINTS: readonly string[] = ['none', ...STEPS]

export const holdPoint: kinds.Kind<HoldPoint> = {
  parse: (text) => (POINTS.includes(text) ? (text as HoldPoint) : undefined),
  allowed: POINTS.join(', '),
}

/**
 * Says that the point is reached, and goes on at SIGUSR2: so that the experiment can stop the
 * process exactly there, instead of hoping to hit a window of microseconds.
 */
export function holdAt(point: HoldPoint, log: Logger): SectionHold {
  return async (step) => {
    if (step !== point) return
    const goOn = new Promise<void>((resolve) => {
      process.once('SIGUSR2', () => resolve())
    })
    log.warn({ event: 'experiment_holding', step })
    await goOn
    log.warn({ event: 'experiment_going_on', step })
  }
}

export type SectionHold = (step: Step) => Promise<void>
