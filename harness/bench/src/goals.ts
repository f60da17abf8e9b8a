import { unevenness } from './crowd.ts'
import { type Figures, sampleOf } from './measure.ts'

/** What was promised, what came out. */
export interface Goal {
  readonly what: string
  readonly wanted: string
  readonly got: string
  readonly met: boolean
}

export function goals(figures: Figures): Goal[] {
  const library = (clients: number) => sampleOf(figures.library, clients)
  const pgbench = (clients: number) => sampleOf(figures.pgbench, clients)
  /** One of the bare loop's two statements. */
  const roundTripMs = figures.bareLoop.ms(0.5) / 2
  return [
    atLeast(
      'library mode ÷ bare loop, 1 client',
      0.9,
      library(1).perSecond / figures.bareLoop.perSecond,
    ),
    ...[
      [8, 1.4],
      [64, 4],
      [256, 6],
    ].flatMap(([clients = 0, factor = 0]) => [
      atLeast(
        `library mode ÷ pgbench, ${clients} clients`,
        factor,
        library(clients).perSecond / pgbench(clients).perSecond,
      ),
      below(
        `p99 of library mode, ${clients} clients`,
        pgbench(clients).ms(0.99),
        library(clients).ms(0.99),
      ),
    ]),
    atLeast(
      'server mode (multiplexed) ÷ library mode, 64 clients',
      0.7,
      figures.multiplexed.perSecond / library(64).perSecond,
    ),
    below('hand-off in one process, p50', 2 * roundTripMs, figures.handOffHere.ms(0.5)),
    below('hand-off across two processes, p50', 5, figures.handOffAcross.ms(0.5)),
    {
      what: `largest ÷ smallest share of ${figures.crowd.waiters} waiters`,
      wanted: '≤ 1.2',
      got: unevenness(figures.crowd).toFixed(2),
      met: unevenness(figures.crowd) <= 1.2,
    },
  ]
}

function atLeast(what: string, wanted: number, got: number): Goal {
  return { what, wanted: `≥ ${wanted}`, got: got.toFixed(2), met: got >= wanted }
}

function below(what: string, wantedMs: number, gotMs: number): Goal {
  return {
    what,
    wanted: `≤ ${wantedMs.toFixed(2)} ms`,
    got: `${gotMs.toFixed(2)} ms`,
    met: gotMs <= wantedMs,
  }
}
