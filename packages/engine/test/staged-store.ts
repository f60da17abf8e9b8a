import {
  type CapableStore,
  ContentionError,
  capabilitiesOf,
  type LockHandle,
  type LockInfo,
  type LockOutcome,
  type LockStore,
  type NextHolder,
  type SessionRegistry,
  type StoreCapabilities,
  type Transfer,
} from '@dlock/lock-api'

export type Verb =
  | 'tryInsert'
  | 'extend'
  | 'deleteIfOwner'
  | 'read'
  | 'reapExpired'
  | 'openSession'
  | 'heartbeat'
  | 'closeSession'
  | 'locksOf'
  | 'want'
  | 'transfer'
  | 'describeSession'
  | 'highestToken'
  | 'subscribe'

/** What happens to one call: `proceed` is the real one. */
export type Scene = <T>(proceed: () => Promise<T>) => Promise<T>

export interface StagedStoreOptions {
  /** Capabilities that this store hides. */
  readonly without?: readonly (keyof StoreCapabilities)[]
  /** Announcements that never arrive. */
  readonly mute?: boolean
  readonly maxLatenessMs?: number
}

/** A store that counts its calls, and in which a test directs what happens to each of them. */
export class StagedStore implements LockStore, SessionRegistry, CapableStore {
  readonly calls: Verb[] = []
  readonly #inner: LockStore & SessionRegistry & Partial<CapableStore>
  readonly #capabilities: StoreCapabilities
  readonly #scenes = new Map<Verb, Scene[]>()
  readonly #always = new Map<Verb, Scene>()
  #onGap: (() => void) | undefined
  subscriptions = 0

  constructor(
    inner: LockStore & SessionRegistry & Partial<CapableStore>,
    options: StagedStoreOptions = {},
  ) {
    this.#inner = inner
    this.#capabilities = this.#staged(capabilitiesOf(inner), options)
  }

  /** How often `verb` was called. */
  count(verb: Verb): number {
    return this.calls.filter((call) => call === verb).length
  }

  /** Directs the next undirected call of `verb`. */
  next(verb: Verb, scene: Scene): void {
    const scenes = this.#scenes.get(verb) ?? []
    this.#scenes.set(verb, [...scenes, scene])
  }

  /** Directs every call of `verb` that has no scene of its own; `undefined`: as it is. */
  always(verb: Verb, scene: Scene | undefined): void {
    if (scene === undefined) this.#always.delete(verb)
    else this.#always.set(verb, scene)
  }

  /** The connection for announcements was lost for a moment. */
  gap(): void {
    this.#onGap?.()
  }

  capabilities(): StoreCapabilities {
    return this.#capabilities
  }

  tryInsert(
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    return this.#play('tryInsert', () => this.#inner.tryInsert(key, ownerId, sessionId, ttlMs))
  }

  extend(key: string, fencingToken: bigint, ttlMs: number): Promise<LockHandle | undefined> {
    return this.#play('extend', () => this.#inner.extend(key, fencingToken, ttlMs))
  }

  deleteIfOwner(key: string, fencingToken: bigint): Promise<boolean> {
    return this.#play('deleteIfOwner', () => this.#inner.deleteIfOwner(key, fencingToken))
  }

  read(key: string): Promise<LockInfo | undefined> {
    return this.#play('read', () => this.#inner.read(key))
  }

  revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    return this.#inner.revoke(key, operator, reason)
  }

  reapExpired(now: Date): Promise<number> {
    return this.#play('reapExpired', () => this.#inner.reapExpired(now))
  }

  backendId(): string {
    return this.#inner.backendId()
  }

  openSession(ownerId: string, ttlMs: number): Promise<string> {
    return this.#play('openSession', () => this.#inner.openSession(ownerId, ttlMs))
  }

  heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    return this.#play('heartbeat', () => this.#inner.heartbeat(sessionId, ttlMs))
  }

  closeSession(sessionId: string): Promise<number> {
    return this.#play('closeSession', () => this.#inner.closeSession(sessionId))
  }

  locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return this.#play('locksOf', () => this.#inner.locksOf(sessionId))
  }

  #play<T>(verb: Verb, proceed: () => Promise<T>): Promise<T> {
    this.calls.push(verb)
    const scene = this.#scenes.get(verb)?.shift() ?? this.#always.get(verb)
    return scene === undefined ? proceed() : scene(proceed)
  }

  #staged(inner: StoreCapabilities, options: StagedStoreOptions): StoreCapabilities {
    const { waiting, transfer, sessions, tokens, ttlBounds } = inner
    const all: StoreCapabilities = {
      ...inner,
      ...(ttlBounds && {
        ttlBounds: { ...ttlBounds, maxLatenessMs: options.maxLatenessMs ?? 0 },
      }),
      ...(waiting && {
        waiting: {
          want: (key: string) => this.#play('want', () => waiting.want(key)),
          subscribe: (onFreed: (key: string) => void, onGap: () => void) =>
            this.#play('subscribe', async () => {
              this.#onGap = onGap
              this.subscriptions += 1
              const stop = await waiting.subscribe(options.mute ? () => {} : onFreed, onGap)
              return async () => {
                this.subscriptions -= 1
                await stop()
              }
            }),
        },
      }),
      ...(transfer && {
        transfer: {
          transfer: (key: string, token: bigint, next: NextHolder): Promise<Transfer> =>
            this.#play('transfer', () => transfer.transfer(key, token, next)),
        },
      }),
      ...(sessions && {
        sessions: {
          describeSession: (sessionId: string) =>
            this.#play('describeSession', () => sessions.describeSession(sessionId)),
        },
      }),
      ...(tokens && {
        tokens: {
          highestToken: () => this.#play('highestToken', () => tokens.highestToken()),
          advanceTokens: (above: bigint) => tokens.advanceTokens(above),
        },
      }),
    }
    const hidden = new Set<string>(options.without)
    return Object.fromEntries(Object.entries(all).filter(([name]) => !hidden.has(name)))
  }
}

/** The store cannot be reached: nothing happens. */
export const unreachable: Scene = () =>
  Promise.reject(new ContentionError('the store did not answer in time'))

/** The store does it, and the answer is lost. */
export const answerLost: Scene = async (proceed) => {
  await proceed()
  throw new ContentionError('the store did not answer in time')
}

/** A call that stays on its way until the test lets it go on. */
export class Gate {
  readonly #opened = withResolvers()
  readonly #reached = withResolvers()

  /** Held before the store does it. */
  readonly before: Scene = async (proceed) => {
    this.#reached.resolve()
    await this.#opened.promise
    return proceed()
  }

  /** Held after the store did it: the answer is on its way. */
  readonly after: Scene = async (proceed) => {
    const answer = await proceed()
    this.#reached.resolve()
    await this.#opened.promise
    return answer
  }

  /** Settles when the call is held. */
  get reached(): Promise<void> {
    return this.#reached.promise
  }

  open(): void {
    this.#opened.resolve()
  }
}

interface Resolvers {
  readonly promise: Promise<void>
  readonly resolve: () => void
}

function withResolvers(): Resolvers {
  let resolve = (): void => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
