import type { Clock } from '@dlock/system'
import { type ChannelOptions, credentials } from '@grpc/grpc-js'
import { Endpoint } from './endpoint.ts'
import { EtcdError } from './etcd-error.ts'
import { type KeyValue, keyValueOf, type RangeRequest, type Txn, TxnAnswer } from './txn.ts'
import type { Header, MethodName, WireRange, WireTxnResponse } from './wire.ts'

/** Certificates in PEM. A client's own `cert` and `key` come together or not at all. */
export interface EtcdTls {
  readonly ca: Buffer
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
  /** The name that the members' certificates carry, when it is not the endpoint's. */
  readonly serverName?: string | undefined
}

export interface EtcdClientOptions {
  /** `host:port`, one or more members of one cluster. */
  readonly endpoints: readonly string[]
  readonly tls?: EtcdTls | undefined
  readonly auth?: { readonly user: string; readonly password: string } | undefined
  /** How long one try may take, in milliseconds. */
  readonly tryMs: number
  readonly clock: Clock
}

/** Calls that may be repeated, whatever became of them. */
const CHANGES_NOTHING: ReadonlySet<MethodName> = new Set(['range', 'status', 'authenticate'])

/** What a linearizable answer said: whose cluster it is, and how far it has come. */
export type HeaderListener = (header: Header, revisionBefore: bigint) => void

/** A list of keys, and whether the range holds more than were asked for. */
export interface RangeAnswer {
  readonly items: readonly KeyValue[]
  readonly more: boolean
  readonly count: bigint
  readonly revision: bigint
}

/**
 * As much of an etcd client as a lock store needs. One channel per member and its own fail-over: a
 * try that got no answer, or met a member without a leader, turns later calls to the next member.
 * It never repeats a write on its own; the one exception is a call refused for want of a valid
 * token, which was definitely not applied. A read goes on to each of the other members.
 *
 * Every method throws `EtcdError`; its `kind` says whether a write may have been applied.
 */
export class EtcdClient {
  readonly clock: Clock
  readonly #endpoints: readonly Endpoint[]
  readonly #auth: EtcdClientOptions['auth']
  readonly #tryMs: number
  readonly #headerListeners = new Set<HeaderListener>()
  #current = 0
  #token: string | undefined
  #signingIn: Promise<string> | undefined
  #highestRevision = 0n

  constructor(options: EtcdClientOptions) {
    if (options.endpoints.length === 0) {
      throw new RangeError('endpoints must name at least one member, got none')
    }
    this.clock = options.clock
    this.#auth = options.auth
    this.#tryMs = options.tryMs
    const { tls } = options
    const channelCredentials =
      tls === undefined
        ? credentials.createInsecure()
        : credentials.createSsl(tls.ca, tls.key ?? null, tls.cert ?? null)
    const channelOptions: ChannelOptions =
      tls?.serverName === undefined
        ? {}
        : {
            'grpc.ssl_target_name_override': tls.serverName,
            'grpc.default_authority': tls.serverName,
          }
    this.#endpoints = options.endpoints.map(
      (address) => new Endpoint(address, channelCredentials, channelOptions, options.clock),
    )
  }

  /** The cluster was restored, and that is known: what was seen before counts for nothing. */
  forgetRevisions(): void {
    this.#highestRevision = 0n
  }

  /** Called with every linearizable answer, and the highest revision known when its call began. */
  onHeader(listener: HeaderListener): void {
    this.#headerListeners.add(listener)
  }

  async txn(txn: Txn): Promise<TxnAnswer> {
    const wire = (await this.#call('txn', txn)) as WireTxnResponse
    return new TxnAnswer(wire, BigInt(wire.header?.revision ?? 0))
  }

  /** Linearizable. */
  async range(request: RangeRequest): Promise<RangeAnswer> {
    const wire = (await this.#call('range', request)) as WireRange & { header: Header }
    return {
      items: wire.kvs.map(keyValueOf),
      more: wire.more,
      count: BigInt(wire.count),
      revision: BigInt(wire.header.revision),
    }
  }

  /** @returns the seconds granted, which may be more than asked */
  async leaseGrant(leaseId: string, ttlSeconds: number): Promise<number> {
    const wire = (await this.#call('leaseGrant', { ID: leaseId, TTL: String(ttlSeconds) })) as {
      TTL: string
    }
    return Number(wire.TTL)
  }

  /** Deletes the lease and every key on it. A lease that is gone already is no failure. */
  async leaseRevoke(leaseId: string): Promise<void> {
    try {
      await this.#call('leaseRevoke', { ID: leaseId })
    } catch (error) {
      if (!(error instanceof EtcdError && error.kind === 'lease-gone')) throw error
    }
  }

  /**
   * Asks for a lease to be kept. **Proves nothing**: a leader that was frozen and resumes
   * acknowledges leases that are gone. Fit only for leases much longer than any freeze.
   */
  async leaseKeepAlive(leaseId: string): Promise<void> {
    const token = await this.#signedIn()
    const endpoint = this.#endpoint()
    const stream = endpoint.stream('leaseKeepAlive', token)
    await new Promise<void>((resolve, reject) => {
      const timer = this.clock.setTimer(this.#tryMs, () => {
        stream.cancel()
        reject(new EtcdError('unknown', `${endpoint.address} did not keep a lease alive in time`))
      })
      stream.on('error', (error) => {
        timer.cancel()
        reject(EtcdError.of(error as never))
      })
      stream.on('data', () => {
        timer.cancel()
        resolve()
        stream.end()
      })
      stream.write({ ID: leaseId })
    })
  }

  async version(): Promise<string> {
    return ((await this.#call('status', {})) as { version: string }).version
  }

  /** A stream to the member in use, for the watch. */
  async openWatch(): Promise<{ stream: ReturnType<Endpoint['stream']>; failed: () => void }> {
    const token = await this.#signedIn()
    const endpoint = this.#endpoint()
    return {
      stream: endpoint.stream('watch', token),
      failed: () => {
        this.#turnFrom(endpoint)
        this.#token = undefined
      },
    }
  }

  close(): void {
    for (const endpoint of this.#endpoints) endpoint.close()
  }

  async #call(name: MethodName, request: object): Promise<object> {
    const before = this.#highestRevision
    const token = await this.#signedIn()
    let answer: object
    try {
      answer = await this.#tryMembers(name, request, token)
    } catch (error) {
      if (!(error instanceof EtcdError && error.kind === 'unauthenticated')) throw error
      if (this.#auth === undefined) throw error
      if (this.#token === token) this.#token = undefined
      answer = await this.#tryMembers(name, request, await this.#signedIn())
    }
    // Only these are linearizable; what a member says of itself may be behind without harm.
    if (name === 'txn' || name === 'range')
      this.#heard((answer as { header: Header }).header, before)
    return answer
  }

  async #tryMembers(name: MethodName, request: object, token: string | undefined): Promise<object> {
    const tries = CHANGES_NOTHING.has(name) ? this.#endpoints.length : 1
    for (let left = tries; ; left -= 1) {
      try {
        return await this.#try(name, request, token)
      } catch (error) {
        const { kind } = error as EtcdError
        if (left <= 1 || (kind !== 'unknown' && kind !== 'no-leader')) throw error
      }
    }
  }

  async #try(name: MethodName, request: object, token: string | undefined): Promise<object> {
    const endpoint = this.#endpoint()
    try {
      return await endpoint.unary(name, request, token, this.#tryMs)
    } catch (error) {
      const { kind } = error as EtcdError
      if (kind === 'unknown' || kind === 'no-leader') this.#turnFrom(endpoint)
      throw error
    }
  }

  #heard(header: Header, before: bigint): void {
    const revision = BigInt(header.revision)
    if (revision > this.#highestRevision) this.#highestRevision = revision
    for (const listener of this.#headerListeners) listener(header, before)
  }

  #endpoint(): Endpoint {
    const endpoint = this.#endpoints[this.#current]
    if (endpoint === undefined) throw new Error('no endpoint')
    return endpoint
  }

  /** Only the first of many failed calls turns: the others would turn on to a third member. */
  #turnFrom(endpoint: Endpoint): void {
    if (this.#endpoint() === endpoint) this.#current = (this.#current + 1) % this.#endpoints.length
  }

  /** One sign-in at a time, whoever asks: a password check costs the member a tenth of a second. */
  async #signedIn(): Promise<string | undefined> {
    if (this.#auth === undefined || this.#token !== undefined) return this.#token
    const { user, password } = this.#auth
    this.#signingIn ??= this.#tryMembers('authenticate', { name: user, password }, undefined)
      .then((answer) => {
        this.#token = (answer as { token: string }).token
        return this.#token
      })
      .finally(() => {
        this.#signingIn = undefined
      })
    return await this.#signingIn
  }
}
