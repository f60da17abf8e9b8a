import { LockHandle, NotLeaderError, type TokenCapability } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { TokenGuard, type TokenRegression } from '../src/token-guard.ts'
import { granted, Stage, watch } from './stage.ts'
import { Gate, type Scene } from './staged-store.ts'

/** The store answers with this token, as one that was restored from a backup would. */
function minting(fencingToken: bigint, sessionId: string): Scene {
  return async <T>(proceed: () => Promise<T>) => {
    const handle = (await proceed()) as LockHandle
    return new LockHandle(
      handle.key,
      handle.ownerId,
      sessionId,
      fencingToken,
      handle.clientDeadlineNanos,
      handle.serverExpiry,
    ) as T
  }
}

test('INV-04: a lower token is released, never handed out, and stops all granting, loudly', async () => {
  const stage = await Stage.started()
  const [worker, other] = await stage.workers('worker', 'other')
  for (let turn = 0; turn < 5; turn += 1) {
    await worker.locks.release(granted(await worker.take('job')))
  }
  const kept = granted(await other.take('kept'))
  const waiting = watch(worker.take('kept', 9_000))
  await stage.settle()
  stage.store.next('tryInsert', minting(3n, other.sessionId))
  await expect(other.take('job', 5_000)).rejects.toThrow(NotLeaderError)
  expect(stage.told('token_regression')).toMatchObject([
    { key: 'job', fencingToken: 3n, highestSeen: 5n },
  ])
  expect(stage.store.calls.slice(-1)).toEqual(['deleteIfOwner'])
  await stage.settle()
  expect(waiting.error).toBeInstanceOf(NotLeaderError)
  await expect(worker.take('anything')).rejects.toThrow(/token regression/)
  await expect(stage.engine.checkHealth()).rejects.toThrow(NotLeaderError)
  // What is held may still be renewed and let go.
  expect(await other.locks.renew(kept)).toMatchObject({ fencingToken: kept.fencingToken })
  expect(await other.locks.release(kept)).toBe(true)
})

test('INV-04: an equal token for another session is a regression; for the same one a retry', async () => {
  const stage = await Stage.started()
  const [worker, other] = await stage.workers('worker', 'other')
  const lock = granted(await worker.take('job'))
  expect(granted(await worker.take('job')).fencingToken).toBe(lock.fencingToken)
  await worker.locks.release(lock)
  stage.store.next('tryInsert', minting(lock.fencingToken, other.sessionId))
  await expect(other.take('job')).rejects.toThrow(NotLeaderError)
  expect(stage.store.count('deleteIfOwner')).toBe(2)
})

test('INV-04: a hand-off with a lower token releases, and stops all granting', async () => {
  const stage = await Stage.started()
  const [worker, other] = await stage.workers('worker', 'other')
  await worker.locks.release(granted(await worker.take('job')))
  const lock = granted(await worker.take('job'))
  const waiting = watch(other.take('job', 9_000))
  await stage.settle()
  stage.store.next('transfer', async <T>(proceed: () => Promise<T>) => {
    const { granted: handle } = (await proceed()) as { granted: LockHandle }
    return { released: true, granted: await minting(1n, other.sessionId)(async () => handle) } as T
  })
  expect(await worker.locks.release(lock)).toBe(true)
  await stage.settle()
  expect(waiting.error).toBeInstanceOf(NotLeaderError)
  expect(stage.told('token_regression')).toHaveLength(1)
})

test('answers that overtake each other are no regression: the late one is just of no use', async () => {
  const stage = await Stage.started()
  const [slow, quick] = await stage.workers('slow', 'quick')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const late = watch(slow.take('job'))
  await gate.reached
  await stage.memory.revoke('job', 'operator', 'a test of overtaking')
  granted(await quick.take('job'))
  gate.open()
  await stage.settle()
  expect(late.state).toBe('rejected')
  expect(stage.told('token_regression')).toHaveLength(0)
  granted(await slow.take('another'))
})

test('INV-04: a restore is noticed by the next sweep, whatever key it harmed', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  await worker.take('job')
  stage.store.always('highestToken', async <T>() => 0n as T)
  await stage.clock.advance(1_000)
  expect(stage.told('token_regression')).toMatchObject([{ fencingToken: 0n, highestSeen: 1n }])
  await expect(worker.take('never seen here')).rejects.toThrow(NotLeaderError)
})

test('P-29: over thousands of keys the guard, the queues and the book stay small', async () => {
  const seen: TokenRegression[] = []
  let highest = 0n
  const tokens: TokenCapability = {
    highestToken: async () => highest,
    advanceTokens: async () => highest,
  }
  const guard = new TokenGuard(tokens, (regression) => seen.push(regression), 100)
  for (let index = 1; index <= 10_000; index += 1) {
    highest = BigInt(index)
    guard.remember(handle(`job-${index}`, highest))
  }
  expect(guard.size).toBe(100)
  // A forgotten key is not a hole: below what was forgotten the store is asked where it stands.
  const mark = guard.mark('job-5')
  const lower = handle('job-5', 4n)
  expect(guard.accepts(mark, lower)).toBe(false)
  await guard.confirm(mark, lower)
  expect(seen).toEqual([])
  highest = 4n
  await expect(guard.confirm(mark, lower)).rejects.toThrow(NotLeaderError)
  expect(seen).toEqual([{ key: 'job-10000', fencingToken: 4n, highestSeen: 10_000n }])
})

test('P-29: an engine that has used thousands of keys keeps nothing for them but the guard', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  for (let index = 0; index < 3_000; index += 1) {
    await worker.locks.release(granted(await worker.take(`job-${index}`, 100)))
  }
  expect(stage.engine.gauges()).toEqual({ held: 0, waiters: 0, sessions: 1 })
  await stage.engine.close()
  expect(stage.clock.pendingTimers).toBe(0)
})

function handle(key: string, fencingToken: bigint): LockHandle {
  return new LockHandle(key, 'worker', 'session', fencingToken, 0n, new Date(0))
}
