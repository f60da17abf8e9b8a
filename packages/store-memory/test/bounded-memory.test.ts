import { systemIds } from '@dlock/system'
import { ManualClock } from '@dlock/testing'
import { beforeEach, describe, expect, test } from 'vitest'
import { deleteIfOwner } from '../src/delete-if-owner.ts'
import { MemoryState } from '../src/memory-state.ts'
import { reapExpired } from '../src/reap-expired.ts'
import { closeSession, openSession } from '../src/sessions.ts'
import { tryInsert } from '../src/try-insert.ts'
import { subscribe } from '../src/waiting.ts'

const KEYS = 5_000
const HOUR_MS = 3_600_000

let clock: ManualClock
let state: MemoryState

beforeEach(() => {
  clock = new ManualClock()
  state = new MemoryState(clock, systemIds)
})

function acquireMany(sessionId: string, ttlMs: number): bigint[] {
  return Array.from({ length: KEYS }, (_, index) => {
    const grant = tryInsert(state, `job/${index}`, 'worker', sessionId, ttlMs)
    if (grant === undefined) throw new Error('must be granted')
    return grant.fencingToken
  })
}

describe('P-29: thousands of past keys leave nothing behind but the counter', () => {
  test('released ones', () => {
    const tokens = acquireMany(openSession(state, 'worker', HOUR_MS), HOUR_MS)
    for (const [index, token] of tokens.entries()) deleteIfOwner(state, `job/${index}`, token)
    expect(state.grants.size).toBe(0)
  })

  test('those of a closed session, and the session', () => {
    const sessionId = openSession(state, 'worker', HOUR_MS)
    acquireMany(sessionId, HOUR_MS)
    expect(closeSession(state, sessionId)).toBe(KEYS)
    expect([state.grants.size, state.sessions.size]).toEqual([0, 0])
  })

  test('expired ones, once they are reaped', async () => {
    acquireMany(openSession(state, 'worker', HOUR_MS), 1_000)
    await clock.advance(1_000)
    expect(reapExpired(state, clock.now())).toBe(KEYS)
    expect(state.grants.size).toBe(0)
  })

  test('sessions that died, which are remembered for ten minutes and then forgotten', async () => {
    for (let index = 0; index < KEYS; index++) openSession(state, 'worker', 1_000)
    await clock.advance(600_999)
    reapExpired(state, clock.now())
    expect(state.sessions.size).toBe(KEYS)
    await clock.advance(1)
    reapExpired(state, clock.now())
    expect(state.sessions.size).toBe(0)
  })

  test('and the next token is above every earlier one nevertheless', async () => {
    const highest = acquireMany(openSession(state, 'worker', 1_000), 1_000).at(-1) ?? 0n
    await clock.advance(HOUR_MS)
    reapExpired(state, clock.now())
    const grant = tryInsert(state, 'job/0', 'worker', openSession(state, 'worker', 1_000), 1_000)
    expect(grant?.fencingToken).toBe(highest + 1n)
  })

  test('listeners that stopped listening', async () => {
    const stops = Array.from({ length: 100 }, () => subscribe(state, () => {}))
    await Promise.all(stops.map((stop) => stop()))
    expect(state.listeners.size).toBe(0)
  })
})
