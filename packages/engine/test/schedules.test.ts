import type { LockHandle } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import { ManualClock, seededIds, seededRandom } from '@dlock/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Stage, type Worker } from './stage.ts'
import { answerLost, type Scene, unreachable } from './staged-store.ts'

const KEYS = ['a', 'b'] as const
const WORKERS_PER_ENGINE = 4
const LEASE_MS = 2_000

type Action =
  | { readonly do: 'acquire'; readonly who: number; readonly key: number; readonly waitMs: number }
  | { readonly do: 'abort' | 'release'; readonly pick: number }
  | { readonly do: 'advance'; readonly ms: number }

interface Call {
  readonly worker: Worker
  readonly process: number
  readonly key: string
  readonly waits: boolean
  readonly abort: AbortController
  state: 'pending' | 'granted' | 'over'
  handle: LockHandle | undefined
}

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('acquire' as const),
      who: fc.nat(2 * WORKERS_PER_ENGINE - 1),
      key: fc.nat(KEYS.length - 1),
      waitMs: fc.constantFrom(0, 1, 300, 5_000, 60_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('abort', 'release', 'release'), pick: fc.nat(99) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat(900) }),
  },
)

/** Two processes on one store, whose calls are late, fail, or lose their answers by `seed`. */
class World {
  readonly clock = new ManualClock()
  readonly memory = new MemoryStore({ clock: this.clock, ids: seededIds(7) })
  readonly calls: Call[] = []
  readonly violations: string[] = []
  readonly stages: Stage[] = []
  readonly workers: Worker[] = []
  readonly #highest = new Map<string, bigint>()
  /** Whose release of what may have been done or not: its retry is not made to queue. */
  readonly #unsure = new Set<string>()

  async open(seed: number, failures: boolean): Promise<void> {
    const random = seededRandom(seed)
    for (const process of [0, 1]) {
      const stage = await Stage.started({
        clock: this.clock,
        memory: this.memory,
        ttlMs: LEASE_MS,
        engine: { random: seededRandom(seed + process + 1) },
      })
      for (let index = 0; index < WORKERS_PER_ENGINE; index += 1) {
        this.workers.push(await stage.worker(`worker-${process}-${index}`, 3_600_000))
      }
      const scene = chaos(() => random.next(), this.clock, failures)
      for (const verb of ['tryInsert', 'deleteIfOwner', 'transfer', 'want', 'read'] as const) {
        stage.store.always(verb, scene)
      }
      this.stages.push(stage)
    }
  }

  async act(step: Action): Promise<void> {
    if (step.do === 'advance') await this.clock.advance(step.ms)
    else if (step.do === 'acquire') this.#acquire(step.who, KEYS[step.key] ?? 'a', step.waitMs)
    else if (step.do === 'abort') this.#pick(step.pick, 'pending')?.abort.abort()
    else await this.#release(this.#pick(step.pick, 'granted'))
    await this.clock.advance(0)
  }

  /** Everybody gives up or lets go. */
  async end(): Promise<void> {
    for (const call of this.calls) if (call.state === 'pending') call.abort.abort()
    await this.clock.advance(200)
    for (const call of this.calls) if (call.state === 'granted') await this.#release(call)
    await this.clock.advance(200)
  }

  #acquire(who: number, key: string, waitMs: number): void {
    const worker = this.workers[who]
    if (worker === undefined) throw new Error(`there is no worker ${who}`)
    // One call per worker and key: what two tasks of a session do is the SDK's to order.
    if (this.calls.some((call) => call.worker === worker && call.key === key && isOpen(call))) {
      return
    }
    const abort = new AbortController()
    const process = who < WORKERS_PER_ENGINE ? 0 : 1
    const waits = waitMs > 0
    const call: Call = { worker, process, key, waits, abort, state: 'pending', handle: undefined }
    this.calls.push(call)
    worker.take(key, waitMs, abort.signal).then(
      (handle) => (handle === undefined ? this.#over(call) : this.#granted(call, handle)),
      () => this.#over(call),
    )
  }

  #granted(call: Call, handle: LockHandle): void {
    call.state = 'granted'
    call.handle = handle
    const highest = this.#highest.get(call.key) ?? 0n
    if (handle.fencingToken < highest) {
      this.violations.push(`${call.key}: token ${handle.fencingToken} after ${highest}`)
    }
    this.#highest.set(call.key, handle.fencingToken)
    if (this.clock.monotonicNanos() >= handle.clientDeadlineNanos) {
      this.violations.push(`${call.key}: granted after its own deadline`)
    }
    if (call.waits) this.#checkOrder(call)
  }

  /** First in, first out among the waiting calls of a process. */
  #checkOrder(call: Call): void {
    const earlier = this.calls
      .slice(0, this.calls.indexOf(call))
      .find(
        ({ process, key, waits, state, abort }) =>
          process === call.process &&
          key === call.key &&
          waits &&
          state === 'pending' &&
          !abort.signal.aborted,
      )
    if (earlier === undefined || this.#unsure.has(`${call.worker.name} ${call.key}`)) return
    this.violations.push(`${call.key}: ${call.worker.name} overtook ${earlier.worker.name}`)
  }

  #over(call: Call): void {
    call.state = 'over'
  }

  async #release(call: Call | undefined): Promise<void> {
    if (call?.handle === undefined) return
    call.state = 'over'
    const releasing = call.worker.locks.release(call.handle).catch(() => {
      this.#unsure.add(`${call.worker.name} ${call.key}`)
    })
    await this.clock.advance(100)
    await releasing
  }

  #pick(pick: number, state: Call['state']): Call | undefined {
    const calls = this.calls.filter((call) => call.state === state)
    return calls[pick % Math.max(calls.length, 1)]
  }
}

function isOpen(call: Call): boolean {
  return call.state !== 'over'
}

/** Up to 30 ms on either way; when `failures`, one call in eight does not come back well. */
function chaos(next: () => number, clock: ManualClock, failures: boolean): Scene {
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      if (next() < 0.5) resolve()
      else clock.setTimer(next() * 30, resolve)
    })
  return async (proceed) => {
    const fate = failures ? next() : 1
    await pause()
    try {
      if (fate < 0.06) return await unreachable(proceed)
      if (fate < 0.12) return await answerLost(proceed)
      return await proceed()
    } finally {
      await pause()
    }
  }
}

const script = fc.tuple(fc.array(action, { minLength: 5, maxLength: 60 }), fc.nat(1_000_000))

test('whatever the schedule: tokens rise, order holds, nothing is left behind', async () => {
  await fc.assert(
    fc.asyncProperty(script, async ([actions, seed]) => {
      const world = new World()
      await world.open(seed, false)
      for (const step of actions) await world.act(step)
      await world.end()
      expect(world.violations).toEqual([])
      expect(world.calls.filter(isOpen)).toEqual([])
      for (const key of KEYS) expect(await world.memory.read(key)).toBeUndefined()
      for (const { engine } of world.stages) {
        expect(engine.gauges()).toMatchObject({ held: 0, waiters: 0 })
      }
      await expectClean(world)
    }),
    { numRuns: 300 },
  )
})

test('so it is when the store fails and loses answers; what that leaves ends with its lease', async () => {
  await fc.assert(
    fc.asyncProperty(script, async ([actions, seed]) => {
      const world = new World()
      await world.open(seed, true)
      for (const step of actions) await world.act(step)
      await world.end()
      expect(world.violations).toEqual([])
      expect(world.calls.filter(isOpen)).toEqual([])
      await world.clock.advance(LEASE_MS)
      for (const key of KEYS) expect(await world.memory.read(key)).toBeUndefined()
      await expectClean(world)
    }),
    { numRuns: 300 },
  )
})

async function expectClean(world: World): Promise<void> {
  const closing = Promise.all(world.stages.map(({ engine }) => engine.close()))
  await world.clock.advance(200)
  await closing
  expect(world.clock.pendingTimers).toBe(0)
}
