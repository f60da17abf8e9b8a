import { setImmediate as nextTurn } from 'node:timers/promises'
import { LockError, type LockHandle } from '@dlock/lock-api'
import type { LockClient } from '@dlock/lock-client'
import type { History } from '@dlock/model'
import type { Clock, Random } from '@dlock/system'
import type { Cell } from './cell.ts'
import { Detector } from './detector.ts'
import { Latencies } from './latencies.ts'
import type { Profile } from './profiles.ts'
import { RecordedSession } from './recorded-session.ts'
import { Recorder } from './recorder.ts'

/** What a run needs. */
export interface RunOptions {
  readonly profile: Profile
  readonly client: LockClient
  readonly cell: Cell
  readonly clock: Clock
  readonly random: Random
  /** Asked before each turn: no client begins another once it says no. */
  readonly goOn: () => boolean
  /** For the histories' headers. */
  readonly backend: string
  readonly seed: number | null
}

/** What came of it. */
export interface RunResult {
  readonly detector: Detector
  readonly latencies: Latencies
  readonly histories: readonly History[]
  /** Calls that ended in a `LockError`: nothing granted, or nothing known. */
  readonly errors: number
  readonly seconds: number
}

/** Drives a load until `goOn` says no, and every client has let go. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { profile, clock, backend, seed } = options
  const load = new Load(options)
  const startNanos = clock.monotonicNanos()
  await Promise.all(Array.from({ length: profile.clients }, (_, client) => load.client(client)))
  const { clients, ttlMs, maxWaitMs, holdMs, renewals, turnsPerSession } = profile
  const settings = { clients, ttlMs, maxWaitMs, holdMs, renewals, turnsPerSession }
  return {
    detector: load.detector,
    latencies: load.latencies,
    histories: load.recorder.histories({ seed, backend, settings }),
    errors: load.errors,
    seconds: Number(clock.monotonicNanos() - startNanos) / 1e9,
  }
}

class Load {
  readonly detector: Detector
  readonly latencies: Latencies
  readonly recorder: Recorder
  readonly #options: RunOptions
  #sessions = 0
  errors = 0

  constructor(options: RunOptions) {
    this.#options = options
    this.detector = new Detector(options.cell, options.clock)
    this.latencies = new Latencies(options.clock)
    this.recorder = new Recorder(options.clock)
  }

  async client(client: number): Promise<void> {
    while (this.#options.goOn()) {
      const session = await this.#forgive(() => this.#openSession())
      if (session === undefined) continue
      await this.#turns(client, session)
      await session.close()
    }
  }

  /** As many critical sections as the session lives for; the last one's lock ends with it. */
  async #turns(client: number, session: RecordedSession): Promise<void> {
    const { turnsPerSession } = this.#options.profile
    for (let turn = 1; this.#options.goOn(); turn += 1) {
      // A service in this process may answer without ever leaving the turn; timers need one, too.
      await nextTurn()
      const isLast = turn === turnsPerSession
      const lives = await this.#forgive(() => this.#turn(client, session, isLast))
      if (isLast || !lives) return
    }
  }

  /** `true`: the session may go on. */
  async #turn(client: number, session: RecordedSession, keep: boolean): Promise<true> {
    const { profile, random } = this.#options
    const { ttlMs, maxWaitMs } = profile
    const key = profile.key(client, random.next())
    const lock = await this.latencies.time('acquire', () =>
      session.acquire(key, { ttlMs, maxWaitMs }),
    )
    if (lock === undefined) return true
    if (await this.detector.enter(lock)) {
      await this.detector.leave(await this.#hold(session, lock))
    }
    if (!keep) await this.latencies.time('release', () => session.release(lock))
    return true
  }

  /** The handle with the last deadline. */
  async #hold(session: RecordedSession, lock: LockHandle): Promise<LockHandle> {
    const { holdMs, renewals } = this.#options.profile
    let latest = lock
    // Others of this process must have their turn meanwhile, or nobody would ever wait for the key.
    await nextTurn()
    if (holdMs === 0) return latest
    for (let part = 0; part < renewals; part += 1) {
      await this.#pause(holdMs / (renewals + 1))
      latest = await this.latencies.time('renew', () => session.renew(lock))
    }
    await this.#pause(holdMs / (renewals + 1))
    return latest
  }

  async #openSession(): Promise<RecordedSession> {
    this.#sessions += 1
    const name = `client-${this.#sessions}`
    const session = await this.#options.client.openSession(name)
    return new RecordedSession(session, this.recorder.client(name))
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.setTimer(ms, resolve, { keepAlive: true })
    })
  }

  /** What a lock service may answer is the end of a session, and of no client; a caller's bug is. */
  async #forgive<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof LockError)) throw error
      this.errors += 1
      return undefined
    }
  }
}
