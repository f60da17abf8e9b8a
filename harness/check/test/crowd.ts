import type { LockHandle, SessionRegistry } from '@dlock/lock-api'
import type { History } from '@dlock/model'
import type { Clock, Random } from '@dlock/system'
import { seededRandom } from '@dlock/testing'
import { type RecordedCalls, type RecordedClient, Recorder, recordedService } from '@dlock/traffic'
import { unreliable } from './unreliable.ts'

/** A service that a crowd may drive: sessions, and calls that are bound to one. */
export interface Service extends Pick<SessionRegistry, 'openSession' | 'closeSession'> {
  forSession(sessionId: string, ownerId: string): RecordedCalls
}

export interface CrowdOptions {
  readonly clock: Clock
  readonly seed: number
  readonly backend: string
  /** Each client has one of them, in turn: several are processes on one store. */
  readonly services: readonly Service[]
  readonly clients: number
  readonly turns: number
  /** Acquires wait, sometimes: then whoever is refused proves less. */
  readonly waits: boolean
  /** The share of calls that fail, before or after they took effect, or take effect later. */
  readonly faults: number
  readonly ttlMs: number
}

const KEY = 'crowd'

/**
 * Clients that behave as badly as they may: they hold beyond their leases, release late and twice,
 * ask again for what they hold, end their sessions, and revoke one another. What each of them sees
 * is recorded; what it does is decided by the seed.
 */
export async function crowd(options: CrowdOptions): Promise<History> {
  const { clock, seed, backend, clients, turns, faults, ttlMs } = options
  const recorder = new Recorder(clock)
  await Promise.all(
    Array.from({ length: clients }, (_, index) => new Member(options, recorder, index).live()),
  )
  const settings = { clients, turns, faults, ttlMs }
  const [history] = recorder.histories({ seed, backend, settings })
  if (history === undefined) throw new Error('nobody did anything')
  return history
}

class Member {
  readonly #options: CrowdOptions
  readonly #recorder: Recorder
  readonly #name: string
  readonly #random: Random
  readonly #service: Service
  #sessions = 0

  constructor(options: CrowdOptions, recorder: Recorder, index: number) {
    this.#options = options
    this.#recorder = recorder
    this.#name = `client-${index}`
    this.#random = seededRandom(options.seed * 1_000 + index)
    const service = options.services[index % options.services.length]
    if (service === undefined) throw new RangeError('a crowd needs a service')
    this.#service = service
  }

  async live(): Promise<void> {
    let left = this.#options.turns
    while (left > 0) {
      const sessionId = await this.#service.openSession(this.#name, 3_600_000)
      this.#sessions += 1
      const client = this.#recorder.client(`${this.#name}.${this.#sessions}`)
      const calls = this.#callsOf(client, sessionId)
      do {
        await this.#turn(calls)
        left -= 1
      } while (left > 0 && !this.#chance(0.05))
      const closing = (): Promise<number> => this.#service.closeSession(sessionId)
      await client.close(closing, { type: 'ok', value: null })
    }
  }

  #callsOf(client: RecordedClient, sessionId: string): RecordedCalls {
    const { clock, faults } = this.#options
    const bound = this.#service.forSession(sessionId, this.#name)
    return recordedService(client, unreliable(bound, { clock, random: this.#random, faults }))
  }

  async #turn(calls: RecordedCalls): Promise<void> {
    const { waits, ttlMs } = this.#options
    const maxWaitMs = waits && this.#chance(0.5) ? 3 * ttlMs : 0
    const lock = await calls.acquire(KEY, this.#name, ttlMs, maxWaitMs).catch(() => undefined)
    if (lock !== undefined) await this.#hold(calls, lock)
    if (this.#chance(0.03)) {
      await calls.forceRevoke(KEY, 'operator', 'to see what happens').catch(() => undefined)
    }
    await this.#pause(ttlMs / 3)
  }

  async #hold(calls: RecordedCalls, lock: LockHandle): Promise<void> {
    const { ttlMs } = this.#options
    await this.#pause(ttlMs / 3)
    if (this.#chance(0.1)) {
      await calls.acquire(KEY, this.#name, ttlMs, 0).catch(() => undefined)
    }
    if (this.#chance(0.2)) await this.#pause(3 * ttlMs)
    if (this.#chance(0.4)) await calls.renew(lock).catch(() => undefined)
    if (this.#chance(0.1)) return
    await calls.release(lock).catch(() => undefined)
    if (this.#chance(0.1)) await calls.release(lock).catch(() => undefined)
  }

  #chance(share: number): boolean {
    return this.#random.next() < share
  }

  #pause(maxMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.setTimer(this.#random.next() * maxMs, resolve, { keepAlive: true })
    })
  }
}
