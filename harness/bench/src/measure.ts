import { bareLoop } from './bare-statements.ts'
import type { BenchDatabase } from './bench-database.ts'
import { type Crowd, runCrowd } from './crowd.ts'
import { runCycles } from './cycles.ts'
import { handOffAcross, handOffHere } from './hand-off.ts'
import { LibraryMode } from './library-mode.ts'
import { runPgbench } from './pgbench.ts'
import { Sample } from './sample.ts'
import { ServerMode } from './server-mode.ts'

export const CONCURRENCIES = [1, 8, 64, 256] as const
const SERVER_CONCURRENCY = 64
const WAITERS = 200

export interface Plan {
  readonly database: BenchDatabase
  /** Path of the program. */
  readonly pgbench: string
  readonly windowMs: number
  /** Windows of each measurement; those to be compared take turns. */
  readonly rounds: number
  readonly say: (line: string) => void
}

export interface Figures {
  readonly bareLoop: Sample
  /** By concurrency. */
  readonly pgbench: ReadonlyMap<number, Sample>
  readonly library: ReadonlyMap<number, Sample>
  readonly multiplexed: Sample
  readonly http: Sample
  readonly handOffHere: Sample
  readonly handOffAcross: Sample
  readonly crowd: Crowd
}

/** Everything, on one server, in one run. */
export async function measure(plan: Plan): Promise<Figures> {
  const { database, windowMs } = plan
  await using library = await LibraryMode.start(database.url)
  const figures: Figures = {
    bareLoop: new Sample(),
    pgbench: new Map(CONCURRENCIES.map((clients) => [clients, new Sample()])),
    library: new Map(CONCURRENCIES.map((clients) => [clients, new Sample()])),
    multiplexed: new Sample(),
    http: new Sample(),
    handOffHere: new Sample(),
    handOffAcross: new Sample(),
    crowd: { waiters: WAITERS, handOffs: 0, seconds: 0, shares: [] },
  }
  await warmUp(plan, library)
  plan.say('bare loop and library mode, 1 client')
  for (let round = 0; round < plan.rounds; round += 1) {
    await bareLoop(database.url, database.sessionId, windowMs, figures.bareLoop)
    await runCycles(library.client, 1, windowMs, sampleOf(figures.library, 1))
  }
  for (const clients of CONCURRENCIES) await compare(plan, figures, library, clients)
  await compareModes(plan, figures, library)
  plan.say('hand-off in one process, and across two')
  await handOffHere(library, windowMs, figures.handOffHere)
  await handOffAcross(library, database, windowMs, figures.handOffAcross)
  plan.say(`${WAITERS} waiters on one key`)
  const crowd = await runCrowd(library.client, WAITERS, windowMs * plan.rounds)
  return { ...figures, crowd }
}

async function compare(
  { database, pgbench, windowMs, rounds, say }: Plan,
  figures: Figures,
  library: LibraryMode,
  clients: number,
): Promise<void> {
  say(`pgbench and library mode, ${clients} client${clients === 1 ? '' : 's'}`)
  const { url, sessionId } = database
  for (let round = 0; round < rounds; round += 1) {
    const options = { pgbench, url, sessionId, clients, windowMs }
    await runPgbench(options, sampleOf(figures.pgbench, clients))
    if (clients > 1) {
      await runCycles(library.client, clients, windowMs, sampleOf(figures.library, clients))
    }
  }
}

async function compareModes(
  { database, windowMs, rounds, say }: Plan,
  figures: Figures,
  library: LibraryMode,
): Promise<void> {
  say(`server mode and library mode, ${SERVER_CONCURRENCY} clients`)
  await using server = await ServerMode.start(database.url)
  await using multiplexed = server.connect('websocket')
  await using http = server.connect('http')
  await runCycles(multiplexed, SERVER_CONCURRENCY, windowMs, new Sample())
  for (let round = 0; round < rounds; round += 1) {
    const clients = SERVER_CONCURRENCY
    await runCycles(multiplexed, clients, windowMs, figures.multiplexed)
    await runCycles(library.client, clients, windowMs, sampleOf(figures.library, clients))
    await runCycles(http, clients, windowMs, figures.http)
  }
}

/** Caches fill, code gets compiled, tables get their pages; none of it is measured. */
async function warmUp({ database, windowMs, say }: Plan, library: LibraryMode): Promise<void> {
  say('warming up')
  await bareLoop(database.url, database.sessionId, windowMs / 2, new Sample())
  for (const clients of CONCURRENCIES) {
    await runCycles(library.client, clients, windowMs / 2, new Sample())
  }
}

export function sampleOf(samples: ReadonlyMap<number, Sample>, clients: number): Sample {
  const sample = samples.get(clients)
  if (sample === undefined) throw new Error(`nothing was measured at ${clients} clients`)
  return sample
}
