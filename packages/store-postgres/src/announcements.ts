import type { Unsubscribe } from '@dlock/lock-api'
import type { Clock, Ids, Random, Timer } from '@dlock/system'
import type { PgListenClient } from './driver-shape.ts'
import type { Executor } from './execute.ts'
import { statement } from './statement.ts'
import { CHANNEL } from './waiting.ts'

export interface AnnouncementsOptions {
  /** Makes a connection that goes straight to PostgreSQL. Without it waiters can only poll. */
  readonly listen: (() => PgListenClient) | undefined
  readonly executor: Executor
  readonly random: Random
  readonly ids: Ids
  readonly onWarning: (message: string) => void
}

/** No key begins so: a key holds no control character. */
const PROBE_PREFIX = '\u0001'
const PROBE = statement('probe', `SELECT pg_notify('${CHANNEL}', $1)`)

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 30_000
/** A connection that died without a word is noticed within about this. */
const CHECK_EVERY_MS = 10_000

/**
 * Listens on a connection of its own, for as long as somebody is subscribed.
 *
 * That `LISTEN` succeeds proves nothing: a pooler in transaction mode accepts it and loses what
 * comes. So each new connection must first hear a probe, sent the way that releases are. Until one
 * does, waiters poll, which the warning says; and it is tried again, ever less often.
 */
export class Announcements {
  readonly #options: AnnouncementsOptions

  constructor(options: AnnouncementsOptions) {
    this.#options = options
  }

  async subscribe(onFreed: (key: string) => void, onGap: () => void): Promise<Unsubscribe> {
    const { listen, onWarning } = this.#options
    if (listen === undefined) {
      onWarning('no connection for announcements was configured: waiters poll')
      return async () => {}
    }
    const subscription = new Subscription(this.#options, listen, onFreed, onGap)
    await subscription.begin()
    return () => subscription.stop()
  }
}

class Subscription {
  readonly #options: AnnouncementsOptions
  readonly #listen: () => PgListenClient
  readonly #onFreed: (key: string) => void
  readonly #onGap: () => void
  readonly #clock: Clock
  #client: PgListenClient | undefined
  #timer: Timer | undefined
  #stopped = false
  #failures = 0
  #onProbe: ((payload: string) => void) | undefined

  constructor(
    options: AnnouncementsOptions,
    listen: () => PgListenClient,
    onFreed: (key: string) => void,
    onGap: () => void,
  ) {
    this.#options = options
    this.#listen = listen
    this.#onFreed = onFreed
    this.#onGap = onGap
    this.#clock = options.executor.clock
  }

  /** Resolves when it listens, or when it is known that for now it cannot. */
  async begin(): Promise<void> {
    await this.#connect()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) await this.#inTime(client.end()).catch(ignore)
  }

  async #connect(): Promise<void> {
    const client = this.#listen()
    this.#client = client
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', ({ payload }) => this.#hear(client, payload ?? ''))
    try {
      await this.#inTime(client.connect())
      await this.#inTime(client.query({ text: `LISTEN ${CHANNEL}` }))
      await this.#probe()
    } catch {
      this.#lose(client)
      return
    }
    if (this.#client !== client) return
    if (this.#failures > 0) this.#onGap()
    this.#failures = 0
    this.#checkLater(client)
  }

  #hear(client: PgListenClient, payload: string): void {
    if (this.#client !== client) return
    if (payload.startsWith(PROBE_PREFIX)) this.#onProbe?.(payload)
    else this.#onFreed(payload)
  }

  /** @throws when nothing is heard in time */
  async #probe(): Promise<void> {
    const { executor, ids } = this.#options
    const payload = PROBE_PREFIX + ids.uuid()
    const heard = new Promise<void>((resolve) => {
      this.#onProbe = (heardPayload) => heardPayload === payload && resolve()
    })
    await executor.run(PROBE, [payload])
    await this.#inTime(heard)
  }

  #checkLater(client: PgListenClient): void {
    this.#timer = this.#clock.setTimer(CHECK_EVERY_MS, () => {
      this.#inTime(client.query({ text: 'SELECT 1' })).then(
        () => this.#client === client && this.#checkLater(client),
        () => this.#lose(client),
      )
    })
  }

  /** Once per connection, however many events say so. */
  #lose(client: PgListenClient): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#timer?.cancel()
    this.#inTime(client.end()).catch(ignore)
    if (this.#failures === 0) {
      this.#options.onWarning('announcements do not arrive: waiters poll until they do')
      this.#onGap()
    }
    this.#retryLater()
  }

  /** Full jitter, so that many processes do not come back all at once. */
  #retryLater(): void {
    if (this.#stopped) return
    const ceiling = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS)
    this.#failures += 1
    this.#timer = this.#clock.setTimer(ceiling * this.#options.random.next(), () => {
      void this.#connect()
    })
  }

  /** @throws when `work` is not done within a call's time */
  #inTime<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(this.#options.executor.callTimeoutMs, () =>
        reject(new Error('no answer in time')),
      )
      work.then(resolve, reject).finally(() => timer.cancel())
    })
  }
}

function ignore(): void {}
