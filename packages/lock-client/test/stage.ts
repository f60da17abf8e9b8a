import { ContentionError, type LockHandle } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import {
  type CallName,
  ManualClock,
  ScriptedService,
  seededIds,
  seededRandom,
} from '@dlock/testing'
import { LockClient, type LockClientOptions, type LockClientSession } from '../src/index.ts'
import { storeService } from './store-service.ts'

export interface StageOptions {
  readonly client?: Partial<LockClientOptions>
  readonly LockClient?: typeof LockClient
}

/** A client over a service that follows a script, a real store behind it, with time moved by hand. */
export class Stage {
  readonly clock = new ManualClock()
  readonly store = new MemoryStore({ clock: this.clock, ids: seededIds(1) })
  readonly service = new ScriptedService(storeService(this.store))
  readonly client: LockClient
  /** What went to `onError`, as `during: message`. */
  readonly errors: string[] = []
  readonly lostSessions: string[] = []

  constructor(options: StageOptions = {}) {
    this.client = new (options.LockClient ?? LockClient)({
      service: this.service,
      clock: this.clock,
      random: seededRandom(1),
      onError: (error, during) => this.errors.push(`${during}: ${(error as Error).message}`),
      onSessionLost: (ownerId) => this.lostSessions.push(ownerId),
      ...options.client,
    })
  }

  /** Somebody else, in the store already. */
  async other(key: string, ttlMs = 3_600_000): Promise<LockHandle> {
    const sessionId = await this.store.openSession('other', ttlMs)
    const handle = await this.store.tryInsert(key, 'other', sessionId, ttlMs)
    if (handle === undefined) throw new Error(`${key} is held already`)
    return handle
  }

  /** Who has `key`, as the store sees it. */
  async holder(key: string): Promise<bigint | undefined> {
    return (await this.store.read(key))?.fencingToken
  }

  /** Resolves once the clock has been moved by `ms`. */
  after(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimer(ms, resolve))
  }

  /** A call that is carried out at once, and answered `ms` later. */
  answeredAfter(ms: number): <T>(proceed: () => Promise<T>) => Promise<T> {
    return async (proceed) => {
      const answer = await proceed()
      await this.after(ms)
      return answer
    }
  }

  /** From now on, no call of these gets anywhere. */
  down(...names: CallName[]): void {
    for (const name of names) this.service.always(name, unreachable)
  }

  count(name: CallName): number {
    return this.service.calls.filter((call) => call.name === name).length
  }
}

export function unreachable(): Promise<never> {
  return Promise.reject(new ContentionError('unreachable'))
}

/** A call that is never answered. */
export function silence(): Promise<never> {
  return new Promise(() => {})
}

/** The grant, or a failed test. */
export async function taken(
  session: LockClientSession,
  ...args: Parameters<LockClientSession['acquire']>
): Promise<LockHandle> {
  const handle = await session.acquire(...args)
  if (handle === undefined) throw new Error(`${args[0]} was not granted`)
  return handle
}

/** What a call came to, once it has. */
export function outcomeOf<T>(call: Promise<T>): { value?: T; error?: unknown; settled: boolean } {
  const outcome: { value?: T; error?: unknown; settled: boolean } = { settled: false }
  call.then(
    (value) => Object.assign(outcome, { value, settled: true }),
    (error: unknown) => Object.assign(outcome, { error, settled: true }),
  )
  return outcome
}
