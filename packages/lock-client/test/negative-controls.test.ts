import { LockLostError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { LockClient } from '../src/index.ts'
import { mutant } from './mutant.ts'
import { Stage, taken, unreachable } from './stage.ts'

/**
 * NFR-07: each rule is held against the client, which keeps it, and against the client with one
 * thing broken on purpose, which must not: a check that cannot fail proves nothing.
 */
type Rule = (client: typeof LockClient) => Promise<void>

/** A thin margin, so that it does not hide what the rule is about. */
const THIN = { sessionTtlMs: 60_000, safetyMargin: 0.1 } as const

const grantCountsFromItsRequest: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: THIN })
  const session = await stage.client.openSession('worker')
  stage.service.next('acquire', stage.answeredAfter(1_000))
  const acquiring = taken(session, 'k', { ttlMs: 6_500 })
  await stage.clock.advance(1_000)
  const handle = await acquiring
  stage.down('renew')
  await stage.clock.advance(5_500)
  expect(await stage.holder('k')).toBeUndefined()
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
}

const renewalCountsFromItsRequest: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: THIN })
  const session = await stage.client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 6_500 })
  stage.service.next('renew', stage.answeredAfter(1_000))
  stage.down('renew')
  await stage.clock.advance(1_950 + 6_500)
  expect(await stage.holder('k')).toBeUndefined()
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
}

const failedRenewalDoesNotExtend: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 10_000 })
  stage.down('renew')
  await stage.clock.advance(10_000)
  expect(await stage.holder('k')).toBeUndefined()
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
}

const deadSessionTakesItsLocks: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 10_000 } })
  const session = await stage.client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 60_000 })
  stage.down('heartbeat')
  // A check that looks before the alarm does: time passes, timers do not.
  stage.clock.suspend(10_000)
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
}

const releaseIsNotUnderTheCallersSignal: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client })
  const session = await stage.client.openSession('worker')
  const controller = new AbortController()
  const { signal } = controller
  await session.using('k', { signal }, () => controller.abort(new Error('stop')))
  expect(await stage.holder('k')).toBeUndefined()
}

const releasedStaysReleased: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const losses: string[] = []
  session.onLockLost(({ key }) => losses.push(key))
  const handle = await taken(session, 'k', { ttlMs: 1_000 })
  // Sent before the release, carried out after it and answered before it: "lost".
  stage.service.next('release', stage.answeredAfter(200))
  stage.service.next('renew', async (real) => {
    await stage.after(50)
    return real()
  })
  await stage.clock.advance(240)
  const releasing = session.release(handle)
  await stage.clock.advance(300)
  expect(await releasing).toBe(true)
  expect(losses).toEqual([])
}

const oneHolderPerToken: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const first = await taken(session, 'k', { maxHoldMs: 1_000 })
  await stage.clock.advance(1_000)
  const second = await taken(session, 'k')
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
}

/** Found by simulation: docs/findings/simulation.md. */
const refusalForgetsNoSpentToken: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const first = await taken(session, 'k')
  stage.service.next('release', unreachable)
  await expect(session.release(first)).rejects.toThrow('unreachable')
  stage.service.next('acquire', async () => undefined)
  expect(await session.acquire('k')).toBeUndefined()
  const second = await taken(session, 'k')
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
}

const lostStaysLost: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 1_000 })
  stage.service.next('renew', stage.answeredAfter(600))
  stage.service.always('renew', () => new Promise(() => {}))
  await stage.clock.advance(240)
  stage.clock.suspend(1_000)
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
  await stage.clock.advance(700)
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
}

const sleepCounts: Rule = async (Client) => {
  const stage = new Stage({ LockClient: Client, client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 10_000 })
  stage.clock.suspend(10_000)
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
}

interface Control {
  readonly rule: Rule
  readonly broken: string
  readonly file: string
  readonly passage: string
  readonly replacement: string
}

const controls: readonly Control[] = [
  {
    rule: grantCountsFromItsRequest,
    broken: 'a deadline is measured from the reply',
    file: 'acquire-call.ts',
    passage: 'new Lease(sentAt, grant.ttlMs, safetyMargin)',
    replacement: 'new Lease(leaseClock.instant(), grant.ttlMs, safetyMargin)',
  },
  {
    rule: renewalCountsFromItsRequest,
    broken: "a renewal's deadline is measured from the reply",
    file: 'heartbeat.ts',
    passage: 'locks.heartbeatAnswered(sentAt, answer)',
    replacement: 'locks.heartbeatAnswered(leaseClock.instant(), answer)',
  },
  {
    rule: failedRenewalDoesNotExtend,
    broken: 'a renewal that failed extends the lease',
    file: 'heartbeat.ts',
    passage: '    locks.sweep()\n',
    replacement:
      '    for (const { handle, ttlMs } of locks.renewals()) locks.find(handle)?.lease.prolong(leaseClock.instant(), ttlMs)\n',
  },
  {
    rule: deadSessionTakesItsLocks,
    broken: "the minimum with the session's deadline is left out",
    file: 'held-locks.ts',
    passage: 'earliest(lock.lease.endsAt, this.#sessionLease.endsAt, lock.holdEndsAt)',
    replacement: 'earliest(lock.lease.endsAt, lock.holdEndsAt)',
  },
  {
    rule: releaseIsNotUnderTheCallersSignal,
    broken: "the release runs under the caller's aborted signal",
    file: 'lock-client-session.ts',
    passage: '      await this.#giveBack(lock)\n    }\n  }\n',
    replacement:
      '      if (options.signal?.aborted !== true) await this.#giveBack(lock)\n    }\n  }\n',
  },
  {
    rule: releasedStaysReleased,
    broken: 'a lock is let go of only when its release was answered',
    file: 'lock-client-session.ts',
    passage:
      '    this.#locks.letGo(lock)\n    try {\n      return await transport.release(lock.handle)\n',
    replacement: `
      try {
        const released = await transport.release(lock.handle)
        this.#locks.letGo(lock)
        return released
    `,
  },
  {
    rule: oneHolderPerToken,
    broken: 'a spent token is handed out again',
    file: 'acquire-call.ts',
    passage: 'if (spent.has(key, grant.fencingToken)) {',
    replacement: 'if (false) {',
  },
  {
    rule: refusalForgetsNoSpentToken,
    broken: 'a refusal forgets a spent token, which the service may answer with later',
    file: 'acquire-call.ts',
    passage: '    this.#failures = 0\n    if (this.#waitLeftMs()',
    replacement:
      '    this.#failures = 0\n    this.#context.spent.forget(this.#wanted.key)\n    if (this.#waitLeftMs()',
  },
  {
    rule: lostStaysLost,
    broken: 'a renewal that was granted brings a lost lock back',
    file: 'held-lock.ts',
    passage: "    this.#state = 'lost'\n",
    replacement: '',
  },
  {
    rule: sleepCounts,
    broken: 'the boot clock is not looked at',
    file: 'deadline.ts',
    passage: 'if (sleptNanos > BOOT_CLOCK_SLACK_NANOS) {',
    replacement: 'if (false) {',
  },
]

test.each(controls)('kept: not $broken', ({ rule }) => rule(LockClient))

test.each(controls)('broken: $broken', async ({ rule, file, passage, replacement }) => {
  const Broken = await mutant(file, passage, replacement)
  await expect(rule(Broken)).rejects.toThrow()
})
