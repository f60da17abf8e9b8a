import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Forwarded, ForwardOnce, type PostgresPool, type Submission } from '../src/index.ts'
import { type GuardedDatabase, guardedDatabase } from './guarded-database.ts'
import { intentInsideTheForwarding, markAfterTheCall, rewriting } from './sabotage.ts'

/**
 * NFR-07: each check below is run against the proxy, where it holds, and against the proxy with one
 * thing broken on purpose, where it must not: a check that cannot fail proves nothing.
 */
let database: GuardedDatabase
beforeAll(async () => {
  database = await guardedDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

type Forward = (request: string) => Promise<Forwarded<string>>
type Sabotage = { pool?: (pool: pg.Pool) => PostgresPool; forward?: (forward: Forward) => Forward }

interface Scene {
  readonly requests: string[]
  readonly proxy: (forward: Forward) => ForwardOnce<string, string>
  readonly submission: (effect: string, token: bigint) => Submission<string>
}

let scenes = 0
/** A key of its own, the proxy as `sabotage` leaves it, and the log of the system behind. */
function scene(sabotage: Sabotage): Scene {
  scenes += 1
  const key = `scene:${scenes}`
  const requests: string[] = []
  return {
    requests,
    proxy: (forward) => {
      const logged: Forward = (request) => {
        requests.push(request)
        return forward(request)
      }
      return new ForwardOnce({
        pool: sabotage.pool?.(database.pool) ?? database.pool,
        forward: sabotage.forward?.(logged) ?? logged,
      })
    },
    submission: (effect, fencingToken) => ({
      lockKey: key,
      fencingToken,
      idempotencyKey: `${key}/${effect}`,
      ownerId: 'worker',
      request: effect,
    }),
  }
}

const acked: Forward = async () => ({ kind: 'acked', reply: 'ok' })
const timedOut: Forward = async () => ({ kind: 'unknown', why: 'no reply' })

/** How often the system was asked for one effect when the proxy died in the middle of asking. */
async function requestsAfterCrash(sabotage: Sabotage): Promise<number> {
  const { requests, proxy, submission } = scene(sabotage)
  let reached = (): void => undefined
  const asked = new Promise<void>((resolve) => {
    reached = resolve
  })
  const doomed = proxy(() => {
    reached()
    return new Promise(() => undefined)
  })
  void doomed.submit(submission('transfer', 7n))
  await asked
  // What a killed process leaves behind: its open transactions are rolled back.
  await database.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction'`,
  )
  await scene({}).proxy(acked).attempts('none') // until a pooled connection works again
  await proxy(acked).submit(submission('transfer', 8n))
  return requests.length
}

/** Whether an older token got through while a newer one's request was still on its way. */
async function olderPassesDuringCall(sabotage: Sabotage): Promise<boolean> {
  const { requests, proxy, submission } = scene(sabotage)
  const older = proxy(acked)
  const newer = proxy(async () => {
    await older.submit(submission('older', 7n))
    return { kind: 'acked', reply: 'ok' }
  })
  await newer.submit(submission('newer', 8n))
  return requests.includes('older')
}

/** Whether one grant got two effects through: the same token, presented again. */
async function replayPasses(sabotage: Sabotage): Promise<boolean> {
  const { requests, proxy, submission } = scene(sabotage)
  await proxy(acked).submit(submission('first', 7n))
  await proxy(acked).submit(submission('second', 7n))
  return requests.includes('second')
}

async function requestsAfterTimeout(sabotage: Sabotage): Promise<number> {
  const { requests, proxy, submission } = scene(sabotage)
  await proxy(timedOut).submit(submission('transfer', 7n))
  await proxy(acked).submit(submission('transfer', 8n))
  return requests.length
}

describe('the proxy as it is', () => {
  test('killed while it asks: never asked twice', async () => {
    expect(await requestsAfterCrash({})).toBe(1)
  })
  test('an older token does not pass while a newer one is on its way', async () => {
    expect(await olderPassesDuringCall({})).toBe(false)
  })
  test('one token, one effect', async () => {
    expect(await replayPasses({})).toBe(false)
  })
  test('a time-out is not asked again', async () => {
    expect(await requestsAfterTimeout({})).toBe(1)
  })
})

describe('broken on purpose', () => {
  test('the intent inside the forwarding transaction: a crash forgets it, and pays twice', async () => {
    expect(await requestsAfterCrash({ pool: intentInsideTheForwarding })).toBe(2)
  })
  test('no unique index to decide: pays twice', async () => {
    const pool = rewriting(/ON CONFLICT \(idempotency_key\)[^R]*RETURNING/s, 'RETURNING')
    const unguarded = rewriting(/'UNRESOLVED', \$6/, `'UNRESOLVED', $6 AND false`)
    expect(await requestsAfterCrash({ pool: (p) => unguarded(pool(p)) })).toBe(2)
  })
  test('the mark advanced after the call: an older token passes meanwhile', async () => {
    expect(await olderPassesDuringCall({ pool: markAfterTheCall })).toBe(true)
  })
  test('<= at admission: a replay is admitted', async () => {
    const pool = rewriting(/f\.fence < excluded\.fence/, 'f.fence <= excluded.fence')
    expect(await replayPasses({ pool })).toBe(true)
  })
  test('a retry on time-out: asked twice', async () => {
    const forward = (once: Forward): Forward => {
      return async (request) => {
        const first = await once(request)
        return first.kind === 'unknown' ? once(request) : first
      }
    }
    expect(await requestsAfterTimeout({ forward })).toBe(2)
  })
})
