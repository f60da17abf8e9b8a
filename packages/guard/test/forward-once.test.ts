import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Forwarded, ForwardOnce, type Submission } from '../src/index.ts'
import { type GuardedDatabase, guardedDatabase } from './guarded-database.ts'

let database: GuardedDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await guardedDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

let last = 0
/** A key of its own for each test, so that none needs a clean table. */
function fresh(): { key: string; effect: string } {
  last += 1
  return { key: `account:${last}`, effect: `effect-${last}` }
}

/** A system without a memory, and the log of what it was asked. */
class Behind {
  readonly log: string[] = []
  next: Forwarded<string> = { kind: 'acked', reference: 'R1', reply: 'ok' }
  onCall: () => Promise<void> = () => Promise.resolve()

  proxy(options: { fencing?: boolean } = {}): ForwardOnce<string, string> {
    return new ForwardOnce({
      pool,
      ...options,
      forward: async (request) => {
        this.log.push(request)
        await this.onCall()
        return this.next
      },
    })
  }
}

const submission = (
  { key, effect }: { key: string; effect: string },
  fencingToken: bigint,
  ownerId = 'worker-a',
): Submission<string> => ({
  lockKey: key,
  fencingToken,
  idempotencyKey: effect,
  ownerId,
  request: effect,
})

test('an admitted submission is forwarded once and its outcome recorded', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = behind.proxy()
  expect(await proxy.submit(submission(it, 7n))).toMatchObject({ kind: 'acked', reply: 'ok' })
  expect(await proxy.attempts(it.effect)).toMatchObject([
    { outcome: 'ACKED', fencingToken: 7n, reference: 'R1', ownerId: 'worker-a', lockKey: it.key },
  ])
})

test('FR-17: a token that is not above the mark is recorded as FENCED and not forwarded', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = behind.proxy()
  await proxy.submit(submission(it, 7n))
  for (const token of [6n, 7n]) {
    const other = { ...it, effect: `${it.effect}-with-${token}` }
    expect(await proxy.submit(submission(other, token, 'worker-b'))).toEqual({
      kind: 'fenced-out',
      refused: { passed: false, key: it.key, presentedToken: token, storedToken: 7n },
    })
    expect(await proxy.attempts(other.effect)).toMatchObject([{ outcome: 'FENCED' }])
  }
  expect(behind.log).toEqual([it.effect])
})

test('FR-18: an effect with a recorded attempt is not forwarded again, whatever the token', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = behind.proxy()
  await proxy.submit(submission(it, 7n))
  const again = await proxy.submit(submission(it, 8n, 'worker-b'))
  expect(again).toMatchObject({ kind: 'duplicate', earlier: { outcome: 'ACKED', reference: 'R1' } })
  expect(behind.log).toEqual([it.effect])
  const outcomes = (await proxy.attempts(it.effect)).map((attempt) => attempt.outcome)
  expect(outcomes).toEqual(['ACKED', 'DUPLICATE'])
})

test('decision 4: the same grant repeating its own request is a duplicate, not fenced out', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = behind.proxy()
  await proxy.submit(submission(it, 7n))
  expect(await proxy.submit(submission(it, 7n))).toMatchObject({ kind: 'duplicate' })
  expect(await proxy.submit(submission(it, 7n, 'worker-b'))).toMatchObject({ kind: 'fenced-out' })
  expect(behind.log).toEqual([it.effect])
})

test('an unknown outcome is unknown for ever, and never forwarded again', async () => {
  const it = fresh()
  const behind = new Behind()
  behind.next = { kind: 'unknown', why: 'no complete reply within 8000 ms' }
  const proxy = behind.proxy()
  expect(await proxy.submit(submission(it, 7n))).toMatchObject({ kind: 'unknown' })
  expect(await proxy.submit(submission(it, 8n))).toMatchObject({
    kind: 'duplicate',
    earlier: { outcome: 'TIMEOUT' },
  })
  expect(behind.log).toEqual([it.effect])
})

test('a forwarder that rejects leaves the outcome unknown', async () => {
  const it = fresh()
  const behind = new Behind()
  behind.onCall = () => Promise.reject(new Error('a bug'))
  expect(await behind.proxy().submit(submission(it, 7n))).toMatchObject({ kind: 'unknown' })
})

test('what was proven not to be presented may be submitted again, under a higher token', async () => {
  const it = fresh()
  const behind = new Behind()
  behind.next = { kind: 'not-presented', why: 'ECONNREFUSED' }
  const proxy = behind.proxy()
  expect(await proxy.submit(submission(it, 7n))).toMatchObject({ kind: 'not-presented' })
  behind.next = { kind: 'acked', reply: 'ok' }
  expect(await proxy.submit(submission(it, 7n))).toMatchObject({ kind: 'fenced-out' })
  expect(await proxy.submit(submission(it, 8n))).toMatchObject({ kind: 'acked' })
})

test('FR-19: the attempt and the mark are committed before the forwarder is called', async () => {
  const it = fresh()
  const behind = new Behind()
  const seen: unknown[] = []
  behind.onCall = async () => {
    // Another connection sees only what is committed.
    const { rows } = await pool.query(
      `SELECT outcome, fence::text FROM dlock_attempt JOIN dlock_fence USING (lock_key)
        WHERE idempotency_key = $1`,
      [it.effect],
    )
    seen.push(...rows)
  }
  await behind.proxy().submit(submission(it, 7n))
  expect(seen).toEqual([{ outcome: 'UNRESOLVED', fence: '7' }])
})

test('P-23: an attempt whose proxy died in the middle stays unknown for every later holder', async () => {
  const it = fresh()
  const behind = new Behind()
  const reached = new Promise<void>((resolve) => {
    behind.onCall = () => {
      resolve()
      return new Promise(() => undefined) // the process "dies": nothing is ever recorded
    }
  })
  void behind.proxy().submit(submission(it, 7n))
  await reached
  const successor = behind.proxy()
  expect(await successor.submit(submission(it, 8n))).toMatchObject({
    kind: 'duplicate',
    earlier: { outcome: 'UNRESOLVED' },
  })
  expect(behind.log).toEqual([it.effect])
})

test('when the attempt cannot be recorded, nothing is presented', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = new ForwardOnce<string, string>({
    pool: { connect: () => Promise.reject(new Error('down')) },
    forward: async (request) => {
      behind.log.push(request)
      return behind.next
    },
  })
  expect(await proxy.submit(submission(it, 7n))).toMatchObject({ kind: 'not-presented' })
  expect(behind.log).toEqual([])
})

test('INV-02: of many concurrent submissions by many replicas one is forwarded', async () => {
  const it = fresh()
  const behind = new Behind()
  const replicas = [behind.proxy(), behind.proxy(), behind.proxy()]
  const submitted = await Promise.all(
    Array.from({ length: 8 }, (_, i) => i).flatMap((i) =>
      replicas.map((replica, j) => {
        const token = BigInt(((3 * i + j) * 7) % 24) + 1n
        return replica.submit(submission(it, token, `worker-${token}`))
      }),
    ),
  )
  expect(behind.log).toEqual([it.effect])
  expect(submitted.filter((answer) => answer.kind === 'acked')).toHaveLength(1)
  expect(await behind.proxy().attempts(it.effect)).toHaveLength(24)
})

test('P-27: once the mark is raised, "no attempt" is final for every older token', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = behind.proxy()
  await proxy.advance(it.key, 8n)
  expect(await proxy.attempts(it.effect)).toEqual([])
  expect(await proxy.submit(submission(it, 8n, 'the old holder'))).toMatchObject({
    kind: 'fenced-out',
  })
  expect(await proxy.submit(submission(it, 9n))).toMatchObject({ kind: 'acked' })
})

test('FR-29: switched off, it forwards whatever comes, and says so in every record', async () => {
  const it = fresh()
  const behind = new Behind()
  const proxy = behind.proxy({ fencing: false })
  await proxy.submit(submission(it, 7n))
  expect(await proxy.submit(submission(it, 6n))).toMatchObject({ kind: 'acked' })
  expect(behind.log).toEqual([it.effect, it.effect])
  const { rows } = await pool.query(
    'SELECT guarded FROM dlock_attempt WHERE idempotency_key = $1',
    [it.effect],
  )
  expect(rows).toEqual([{ guarded: false }, { guarded: false }])
})

test('bad input is refused before anything is recorded', async () => {
  const proxy = new Behind().proxy()
  await expect(proxy.submit(submission(fresh(), 0n))).rejects.toThrow(RangeError)
  await expect(proxy.submit(submission({ key: '', effect: 'e' }, 1n))).rejects.toThrow(/lockKey/)
})
