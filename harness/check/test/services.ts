import { LockEngine } from '@dlock/engine'
import type { LockStore, SessionRegistry } from '@dlock/lock-api'
import type { History } from '@dlock/model'
import type { MemoryStore } from '@dlock/store-memory'
import type { Clock } from '@dlock/system'
import { ManualClock, seededRandom } from '@dlock/testing'
import { type CrowdOptions, crowd, type Service } from './crowd.ts'

/** The store's own calls, with no engine that would hide or repair anything. */
function bare(store: LockStore & SessionRegistry, ttlMs: number): Service {
  return {
    openSession: (...asked) => store.openSession(...asked),
    closeSession: (...asked) => store.closeSession(...asked),
    forSession: (sessionId, ownerId) => ({
      acquire: (key, _, ttl) => store.tryInsert(key, ownerId, sessionId, ttl),
      renew: ({ key, fencingToken }) => store.extend(key, fencingToken, ttlMs),
      release: ({ key, fencingToken }) => store.deleteIfOwner(key, fencingToken),
      forceRevoke: (...asked) => store.revoke(...asked),
    }),
  }
}

export type Load = Partial<Omit<CrowdOptions, 'clock' | 'services' | 'seed'>>

const LOAD = { clients: 5, turns: 12, faults: 0.1, ttlMs: 100, waits: false, backend: 'memory' }

/** A crowd at a bare store, in time that a test moves: the same seed gives the same history. */
export async function atBareStore(
  store: new (clock: Clock) => MemoryStore,
  seed: number,
  load: Load = {},
): Promise<History> {
  const clock = new ManualClock()
  const options = { ...LOAD, ...load }
  const services = [bare(new store(clock), options.ttlMs)]
  return finished(clock, crowd({ ...options, clock, seed, services }))
}

/** A crowd at two engines over one store, as at two processes. */
export async function atTwoEngines(
  store: (clock: Clock) => MemoryStore,
  seed: number,
  load: Load = {},
): Promise<History> {
  const clock = new ManualClock()
  const shared = store(clock)
  const engines = [1, 2].map((number) => {
    return new LockEngine({ store: shared, clock, random: seededRandom(seed + number) })
  })
  for (const engine of engines) await engine.start()
  const services = engines.map((engine) => engine satisfies Service)
  const options = { ...LOAD, waits: true, ...load, clock, seed, services }
  const history = await finished(clock, crowd(options))
  for (const engine of engines) await finished(clock, engine.close())
  return history
}

/** Time passes until `work` is done. */
async function finished<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let isDone = false
  const done = work.finally(() => {
    isDone = true
  })
  while (!isDone) await clock.advance(50)
  return done
}
