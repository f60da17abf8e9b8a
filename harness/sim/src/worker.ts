import {
  type LockHandle,
  LockLostError,
  RetryableLockError,
  SessionDeadError,
} from '@dlock/lock-api'
import { LockClient, type LockClientSession } from '@dlock/lock-client'
import type { Clock } from '@dlock/system'
import type { Breakage } from './broken-builds.ts'
import { Chance } from './chance.ts'
import type { Answer, GuardedResource } from './guarded-resource.ts'
import type { Journal } from './journal.ts'
import type { LockDatabase } from './lock-database.ts'
import type { LockServer } from './lock-server.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Knobs } from './scenario.ts'
import { ServiceLink } from './service-link.ts'
import { within } from './store-link.ts'

export interface WorkerParts {
  readonly machine: Machine
  readonly servers: readonly LockServer[]
  readonly database: LockDatabase
  readonly resource: GuardedResource
  readonly network: Network
  readonly journal: Journal
  readonly seed: number
  readonly knobs: Knobs
  readonly breakage: Breakage
}

/** Who is inside a critical section of each key, as they believe. */
export type Beliefs = Map<string, Set<string>>

/** The resource is asked so often for one step, with one request id. */
const TRIES = 3
/** A task that looks at its lock does so this often while it works. */
const LOOK_EVERY_MS = 40

/**
 * An application: the shipped client, and tasks that take locks and write to the resource under
 * their tokens. Half of the tasks look before they write whether they still hold the lock; the others
 * never do, which must not matter.
 */
export class Worker {
  readonly machine: Machine
  readonly #parts: WorkerParts
  readonly #beliefs: Beliefs
  readonly #handedOut: Set<string>

  constructor(parts: WorkerParts, beliefs: Beliefs, handedOut: Set<string>) {
    this.machine = parts.machine
    this.#parts = parts
    this.#beliefs = beliefs
    this.#handedOut = handedOut
    this.#begin()
  }

  /** A new process, which knows nothing of the one before. */
  restart(): void {
    this.machine.start()
    this.#begin()
  }

  #begin(): void {
    const { knobs, journal } = this.#parts
    const life = new Life(this.#parts, this.#beliefs, this.#handedOut)
    for (let task = 1; task <= knobs.tasks; task++) {
      life.run(task).catch((error: unknown) => {
        journal.violate('unexpected', `${this.machine.name}: ${String(error)}`)
      })
    }
  }
}

/** One process of a worker. */
class Life {
  readonly #parts: WorkerParts
  readonly #beliefs: Beliefs
  readonly #handedOut: Set<string>
  readonly #name: string
  readonly #chance: Chance
  readonly #clock: Clock
  readonly #client: LockClient
  #session: Promise<LockClientSession> | undefined
  #requests = 0

  constructor(parts: WorkerParts, beliefs: Beliefs, handedOut: Set<string>) {
    const { machine, servers, network, seed, knobs, breakage } = parts
    this.#parts = parts
    this.#beliefs = beliefs
    this.#handedOut = handedOut
    this.#name = `${machine.name}.${machine.life}`
    this.#chance = new Chance(seed, this.#name)
    const clock = machine.clock()
    this.#clock = clock
    const links = new Chance(seed, `${this.#name} link`)
    const link = new ServiceLink(machine, servers, network, links, parts.database.witness)
    this.#client = new LockClient({
      service: breakage.service?.(link, clock) ?? link,
      clock: breakage.clock?.(clock) ?? clock,
      random: new Chance(seed, `${this.#name} client`),
      sessionTtlMs: knobs.sessionTtlMs,
      safetyMargin: breakage.safetyMargin ?? knobs.safetyMargin,
      onError: (error, during) => {
        const isKnown = error instanceof RetryableLockError || error instanceof LockLostError
        if (!isKnown) parts.journal.violate('unexpected', `${during}: ${String(error)}`)
      },
    })
  }

  /** Takes locks for ever. */
  async run(task: number): Promise<never> {
    const { knobs } = this.#parts
    const looks = task % 2 === 1
    for (;;) {
      await this.#pause(this.#chance.between(0, knobs.idleMs))
      const key = this.#chance.pick(knobs.keys)
      try {
        const session = await this.#open()
        const options = {
          ttlMs: this.#chance.pick(knobs.ttlsMs),
          maxWaitMs: this.#chance.happens(0.3) ? 0 : Math.floor(this.#chance.between(0, 4_000)),
          ...(this.#chance.happens(0.1) && { signal: this.#impatience() }),
        }
        const result = await session.using(key, options, (lock) =>
          this.#criticalSection(session, lock, task, looks),
        )
        this.#parts.journal.count(result.granted ? 'worked' : 'not granted')
      } catch (error) {
        await this.#putUpWith(error)
      }
    }
  }

  async #criticalSection(
    session: LockClientSession,
    lock: LockHandle,
    task: number,
    looks: boolean,
  ): Promise<void> {
    const { resource, journal } = this.#parts
    const { key, fencingToken } = lock
    this.#checkHandedOut(lock)
    const inside = this.#beliefs.get(key) ?? new Set()
    this.#beliefs.set(key, inside.add(`${this.#name}.${task}`))
    if (inside.size > 1) journal.count('two believe at once', key)
    try {
      let answer = await this.#ask('claim', key, (id) => resource.claim(key, fencingToken, id))
      const writes = this.#chance.whole(1, 3)
      for (let i = 0; i < writes; i++) {
        if (answer?.kind !== 'accepted') return
        let workMs = this.#chance.between(0, this.#parts.knobs.workMs)
        for (; looks && workMs > LOOK_EVERY_MS; workMs -= LOOK_EVERY_MS) {
          await this.#pause(LOOK_EVERY_MS)
          this.#look(session, lock)
        }
        await this.#pause(workMs)
        if (looks) this.#look(session, lock)
        const { version } = answer
        answer = await this.#ask('write', key, (id) =>
          resource.write(key, fencingToken, id, version),
        )
      }
      if (looks) this.#look(session, lock)
      await this.#ask('put', key, (id) => resource.put(key, fencingToken, id))
    } finally {
      inside.delete(`${this.#name}.${task}`)
    }
  }

  /** A look that does not throw is a belief, and its clocks answer for it (FR-11). */
  #look(session: LockClientSession, lock: LockHandle): void {
    const { database, machine } = this.#parts
    session.checkStillHeld(lock)
    // Monotonic clocks do not jump; one that did hides how long its machine slept afterwards.
    if (machine.jumps === 0) database.witness.believed(lock.key, lock.fencingToken)
  }

  /** One token is carried by one holder, whatever the service answers twice (decision 3). */
  #checkHandedOut({ key, fencingToken }: LockHandle): void {
    const grant = `${key} ${fencingToken}`
    if (this.#handedOut.has(grant)) {
      this.#parts.journal.violate('FR-02', `${grant} was handed out twice`)
    }
    this.#handedOut.add(grant)
  }

  /** Asks the resource, and again with the same request id; `undefined`: no answer. */
  async #ask(
    what: string,
    key: string,
    act: (requestId: string) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    const { network, machine, resource, breakage } = this.#parts
    this.#requests += 1
    const requestId = `${this.#name}-${this.#requests}`
    for (let tries = 1; tries <= TRIES; tries++) {
      const id = breakage.newRequestPerTry === true ? `${requestId}-${tries}` : requestId
      const answer = network.call(machine, resource.machine, `${what} ${key} ${id}`, () => act(id))
      try {
        return await within(this.#clock, 400, answer)
      } catch (error) {
        if (!(error instanceof RetryableLockError)) throw error
      }
    }
    return undefined
  }

  #open(): Promise<LockClientSession> {
    this.#session ??= this.#client.openSession(this.#name)
    return this.#session
  }

  /** The contract's errors are life; any other is a bug. */
  async #putUpWith(error: unknown): Promise<void> {
    const { journal } = this.#parts
    if (error instanceof SessionDeadError || error === IMPATIENT) {
      if (error !== IMPATIENT) this.#session = undefined
      journal.count(error === IMPATIENT ? 'given up' : 'session lost')
    } else if (error instanceof LockLostError) journal.count('stopped itself', error.message)
    else if (error instanceof RetryableLockError) {
      journal.count('no decision', error.message)
      await this.#session?.catch(() => (this.#session = undefined))
    } else throw error
    await this.#pause(this.#chance.between(0, 100))
  }

  #impatience(): AbortSignal {
    const giveUp = new AbortController()
    this.#clock.setTimer(this.#chance.between(0, 1_000), () => giveUp.abort(IMPATIENT))
    return giveUp.signal
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.setTimer(ms, resolve))
  }
}

const IMPATIENT = new Error('given up')
