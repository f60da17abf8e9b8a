import { ContentionError, type LockHandle, NotLeaderError } from '@dlock/lock-api'
import type { Random } from '@dlock/system'
import { seededRandom } from '@dlock/testing'
import { expect, test } from 'vitest'
import { LockClient, type LockClientSession } from '../src/index.ts'
import { Stage, silence } from './stage.ts'

/**
 * Random schedules of a service that fails before or after it has done the work, answers late or
 * never, of machines that sleep and clocks that jump, and of tasks that acquire, release and give
 * up. After every step: whoever may believe, holds. At the end: nothing is left, and no token was
 * carried twice. A seed that fails is in the test's name.
 */
const SEEDS = Array.from({ length: 100 }, (_, i) => i + 1)
const STEPS = 150
const KEYS = ['a', 'b', 'c']

class Schedule {
  readonly #stage: Stage
  readonly #random: Random
  readonly #carried = new Map<string, Set<bigint>>()
  readonly #held = new Set<{ session: LockClientSession; handle: LockHandle }>()
  readonly #calls: Promise<unknown>[] = []
  readonly #giveUps = new Set<AbortController>()
  #isDown = false

  constructor(seed: number) {
    this.#random = seededRandom(seed)
    this.#stage = new Stage({
      client: {
        sessionTtlMs: this.#one([1_000, 5_000, 15_000]),
        // Without a margin nothing hides a deadline that is a little too late.
        safetyMargin: this.#one([0, 0, 0.3]),
        random: seededRandom(seed + 1_000),
      },
    })
    const { service } = this.#stage
    service.always('acquire', (real) => this.#answer(real))
    service.always('renew', (real) => this.#answer(real))
    service.always('heartbeat', (real) => this.#answer(real))
    service.always('release', (real) => this.#answer(real))
  }

  async run(): Promise<void> {
    const { client, clock, service } = this.#stage
    const twin = new LockClient({ service, clock, random: seededRandom(7) })
    let sessions = await Promise.all([client.openSession('one'), twin.openSession('two')])
    for (let step = 0; step < STEPS; step++) {
      await this.#act(this.#one(sessions))
      await this.#passTime()
      await this.#nobodyBelievesWrongly()
      // A session that died is replaced, as an application would.
      if (this.#random.next() < 0.05) {
        sessions = [await client.openSession('one'), await twin.openSession('two')]
      }
    }
    for (const name of ['acquire', 'renew', 'heartbeat', 'release'] as const) {
      service.always(name, undefined)
    }
    const closing = Promise.all([client.close(), twin.close()])
    await clock.advance(10_000)
    await closing
    await Promise.all(this.#calls)
    expect(clock.pendingTimers).toBe(0)
  }

  async #act(session: LockClientSession): Promise<void> {
    const { clock } = this.#stage
    const chance = this.#random.next()
    if (chance < 0.5) {
      const controller = new AbortController()
      this.#giveUps.add(controller)
      const options = {
        ttlMs: this.#one([500, 2_000, 30_000]),
        maxWaitMs: this.#one([0, 300, 5_000]),
        signal: controller.signal,
        ...(this.#random.next() < 0.1 && { maxHoldMs: 1_500 }),
      }
      this.#follow(
        session.acquire(this.#one(KEYS), options).then((handle) => {
          if (handle === undefined) return
          const carried = this.#carried.get(handle.key) ?? new Set()
          expect(carried.has(handle.fencingToken)).toBe(false)
          this.#carried.set(handle.key, carried.add(handle.fencingToken))
          this.#held.add({ session, handle })
        }),
      )
    } else if (chance < 0.8) {
      const [held] = this.#held
      if (held === undefined) return
      this.#held.delete(held)
      this.#follow(held.session.release(held.handle))
    } else if (chance < 0.9) {
      const [controller] = this.#giveUps
      controller?.abort(new Error('given up'))
      if (controller !== undefined) this.#giveUps.delete(controller)
    } else if (chance < 0.93) {
      this.#isDown = !this.#isDown
    } else if (chance < 0.96) {
      clock.jumpWall(this.#one([-3_600_000, 3_600_000]))
    } else {
      clock.suspend(this.#one([100, 20_000]))
    }
  }

  async #passTime(): Promise<void> {
    await this.#stage.clock.advance(this.#one([0, 1, 30, 200, 900]))
  }

  /** What a check lets pass is held, by the store's own clock, with that token. */
  async #nobodyBelievesWrongly(): Promise<void> {
    for (const held of this.#held) {
      const { session, handle } = held
      try {
        session.checkStillHeld(handle)
      } catch {
        this.#held.delete(held)
        continue
      }
      expect(await this.#stage.holder(handle.key)).toBe(handle.fencingToken)
    }
  }

  async #answer<T>(real: () => Promise<T>): Promise<T> {
    const chance = this.#random.next()
    if (this.#isDown || chance < 0.06) throw new ContentionError('failed before')
    if (chance < 0.08) throw new NotLeaderError('electing', { retryAfterMs: 100 })
    if (chance < 0.2) await this.#later(400)
    const answer = await real()
    if (chance < 0.26) throw new ContentionError('failed after')
    if (chance < 0.28) return silence()
    if (chance > 0.8) await this.#later(600)
    return answer
  }

  #later(ms: number): Promise<void> {
    return this.#stage.after(Math.floor(this.#random.next() * ms))
  }

  /** Typed failures are expected; a failed expectation is not. */
  #follow(call: Promise<unknown>): void {
    const followed = call.catch((error: unknown) => {
      if ((error as Error).name === 'AssertionError') throw error
    })
    followed.catch(() => {})
    this.#calls.push(followed)
  }

  #one<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random.next() * items.length)] as T
  }
}

test.each(SEEDS)('whoever may believe, holds: seed %i', { timeout: 60_000 }, (seed) =>
  new Schedule(seed).run(),
)
