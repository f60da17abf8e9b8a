import assert from 'node:assert/strict'
import {
  capabilitiesOf,
  grantedTtlMs,
  LockHandle,
  SessionDeadError,
  type StoreCapabilities,
  type TtlBounds,
} from '@dlock/lock-api'
import type { CapabilityName, StoreNamespace, TestedStore } from './store-case.ts'

/**
 * The steps that cases are made of. No case is decided by how fast the machine is: what has to
 * live lives for an hour, what has to end is waited for by the store's own clock.
 */

/** Outlives every case. */
export const LONG_MS = 3_600_000
/** Short enough to wait for; never used where the lease has to be alive still. */
export const SHORT_MS = 100
/** By any clock in the future. Lets the store's own clock decide alone what is reaped. */
export const FAR_FUTURE: Date = new Date('9999-01-01T00:00:00Z')
/** An announcement that takes longer counts as missed. */
const HEARD_WITHIN_MS = 10_000
/** Clocks of two machines, or two clocks of one, differ in speed; by less than one in a thousand. */
const DRIFT = 0.001

const EXACT: TtlBounds = { granularityMs: 1, minTtlMs: 1, maxLatenessMs: 0 }

export function boundsOf(store: TestedStore): TtlBounds {
  return capabilitiesOf(store).ttlBounds ?? EXACT
}

/** The capability that the case says it needs. */
export function need<Name extends CapabilityName>(
  store: TestedStore,
  name: Name,
): NonNullable<StoreCapabilities[Name]> {
  const capability = capabilitiesOf(store)[name]
  assert.ok(capability, `the store does not declare ${name}`)
  return capability
}

/** A session that outlives the case. */
export function openSession(store: TestedStore, ownerId = 'worker'): Promise<string> {
  return store.openSession(ownerId, LONG_MS)
}

/** Acquires what must be free. */
export async function acquire(
  store: TestedStore,
  key: string,
  sessionId: string,
  ttlMs: number = LONG_MS,
): Promise<LockHandle> {
  const handle = await store.tryInsert(key, 'worker', sessionId, ttlMs)
  assert.ok(handle, `${JSON.stringify(key)} must be granted`)
  assert.ok(handle instanceof LockHandle, 'a grant is a LockHandle')
  return handle
}

/** Acquires what must be free, for a session of its own. */
export async function acquireAfresh(store: TestedStore, key: string): Promise<LockHandle> {
  return acquire(store, key, await openSession(store))
}

/** Tokens that are not the grant's. Another key's may well be the same: tokens order one key's. */
export function otherTokens(grant: LockHandle, ofOtherKey: LockHandle): readonly bigint[] {
  return [grant.fencingToken + 1n, ofOtherKey.fencingToken].filter(
    (token) => token !== grant.fencingToken,
  )
}

/** The grant lives: nobody else gets the key, and its holder can prolong it with its token. */
export async function assertLives(store: TestedStore, grant: LockHandle): Promise<void> {
  const other = await openSession(store, 'somebody-else')
  const taken = await store.tryInsert(grant.key, 'somebody-else', other, LONG_MS)
  assert.equal(taken, undefined, 'a live grant must not be taken over')
  const extended = await store.extend(grant.key, grant.fencingToken, LONG_MS)
  assert.equal(extended?.fencingToken, grant.fencingToken, 'a live grant must be extendable')
}

/** The grant is gone: nobody sees it, and nothing prolongs it. */
export async function assertGone(store: TestedStore, grant: LockHandle): Promise<void> {
  const extended = await store.extend(grant.key, grant.fencingToken, LONG_MS)
  assert.equal(extended, undefined, 'a grant that is gone must be lost')
  const info = await store.read(grant.key)
  assert.notEqual(info?.fencingToken, grant.fencingToken, 'a grant that is gone must not be read')
  const locks = await store.locksOf(grant.sessionId)
  if (info === undefined) assert.ok(!locks.has(grant.key), 'locksOf must not list it')
}

/** The session is dead, so it is granted nothing. */
export async function assertGrantsNothing(store: TestedStore, sessionId: string): Promise<void> {
  const key = 'granted-to-the-dead'
  await assert.rejects(store.tryInsert(key, 'worker', sessionId, LONG_MS), SessionDeadError)
  assert.equal(await store.read(key), undefined, 'a dead session must be granted nothing')
}

/** Lets a lease or session of `ttlMs`, begun by now, end. */
export async function letEnd(given: StoreNamespace, ttlMs: number): Promise<void> {
  const bounds = boundsOf(given.store)
  await given.waitMs(grantedTtlMs(ttlMs, bounds) + bounds.maxLatenessMs)
}

/**
 * Does something to a lease of `ttlMs` while it runs. A machine that stalls may let the lease end
 * first; then `attempt` returns `undefined` with good reason, and a longer lease is tried.
 */
export async function whileItRuns<Result>(
  given: StoreNamespace,
  attempt: (ttlMs: number) => Promise<Result | undefined>,
): Promise<{ readonly ttlMs: number; readonly result: Result }> {
  for (const ttlMs of [SHORT_MS, 10 * SHORT_MS, 100 * SHORT_MS]) {
    const began = given.clock.monotonicNanos()
    const result = await attempt(ttlMs)
    if (result !== undefined) return { ttlMs, result }
    const tookMs = toMs(given.clock.monotonicNanos() - began)
    const grantedMs = grantedTtlMs(ttlMs, boundsOf(given.store))
    assert.ok(tookMs >= grantedMs, `ended after ${tookMs} ms of ${grantedMs}`)
  }
  throw new Error('this machine stalls for ten seconds at a time; nothing can be said')
}

/**
 * `begin` starts a lease or session of `ttlMs`; from when on does `hasEnded` say so? Never early, and
 * late by no more than the store declares, whatever the machine did in between: early is measured
 * from before the start to after the end was seen, late from after the start to before it was not.
 */
export async function assertEndsInTime(
  given: StoreNamespace,
  ttlMs: number,
  begin: () => Promise<unknown>,
  hasEnded: () => Promise<boolean>,
): Promise<void> {
  const bounds = boundsOf(given.store)
  const grantedMs = grantedTtlMs(ttlMs, bounds)
  const beforeStart = given.clock.monotonicNanos()
  await begin()
  const afterStart = given.clock.monotonicNanos()
  await given.waitMs(grantedMs - 1)
  for (let stepMs = 1; ; stepMs = Math.min(2 * stepMs, SHORT_MS)) {
    const asked = given.clock.monotonicNanos()
    if (await hasEnded()) break
    const latestMs = (grantedMs + bounds.maxLatenessMs) * (1 + DRIFT)
    const runMs = toMs(asked - afterStart)
    assert.ok(runMs <= latestMs, `runs on after ${runMs} ms, must end within ${latestMs}`)
    await given.waitMs(stepMs)
  }
  const tookMs = toMs(given.clock.monotonicNanos() - beforeStart)
  assert.ok(tookMs >= grantedMs * (1 - DRIFT), `ended after ${tookMs} ms of ${grantedMs}`)
}

/** A handle's deadline counts from an instant between sending and answer, and never from later. */
export async function assertDeadlineCountsFromSending(
  given: StoreNamespace,
  ttlMs: number,
  ask: () => Promise<LockHandle | undefined>,
): Promise<void> {
  const sent = given.clock.monotonicNanos()
  const handle = await ask()
  const answered = given.clock.monotonicNanos()
  assert.ok(handle, 'must be granted')
  const lease = BigInt(grantedTtlMs(ttlMs, boundsOf(given.store))) * 1_000_000n
  const start = handle.clientDeadlineNanos - lease
  assert.ok(start >= sent, 'the deadline is that of a lease shorter than granted')
  assert.ok(start <= answered, 'the deadline is later than that of the lease granted')
}

/** Counts the announcements of freed keys; a gap is one of every key. */
export interface Listener {
  heard(key: string): number
  readonly stop: () => Promise<void>
}

export async function listen(store: TestedStore): Promise<Listener> {
  const counts = new Map<string, number>()
  let gaps = 0
  const stop = await need(store, 'waiting').subscribe(
    (key) => counts.set(key, (counts.get(key) ?? 0) + 1),
    () => {
      gaps += 1
    },
  )
  return { heard: (key) => gaps + (counts.get(key) ?? 0), stop }
}

export async function assertHears(
  given: StoreNamespace,
  listener: Listener,
  key: string,
  times = 1,
): Promise<void> {
  const stepMs = 5
  for (let waitedMs = 0; listener.heard(key) < times; waitedMs += stepMs) {
    assert.ok(waitedMs < HEARD_WITHIN_MS, `the end of ${JSON.stringify(key)} was not announced`)
    await given.waitMs(stepMs)
  }
}

function toMs(nanos: bigint): number {
  return Number(nanos) / 1_000_000
}
