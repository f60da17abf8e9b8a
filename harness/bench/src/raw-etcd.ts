import { absent, EtcdClient, put, remove, unchangedSince } from '@dlock/store-etcd/client'
import { systemClock } from '@dlock/system'

const LEASE_SECONDS = 600

/** What an acquire and a release write, as one plain transaction each, one by one. */
export class RawLoop implements Disposable {
  readonly #client: EtcdClient
  readonly #lease: string

  private constructor(client: EtcdClient, lease: string) {
    this.#client = client
    this.#lease = lease
  }

  static async open(endpoints: readonly string[]): Promise<RawLoop> {
    const client = new EtcdClient({ endpoints, tryMs: 5_000, clock: systemClock })
    const lease = String(process.hrtime.bigint())
    await client.leaseGrant(lease, LEASE_SECONDS)
    return new RawLoop(client, lease)
  }

  /** Of the member that answers. */
  version(): Promise<string> {
    return this.#client.version()
  }

  async acquire(key: string): Promise<bigint> {
    const answer = await this.#client.txn({
      compare: [absent(`${key}/l`)],
      success: ['l', 'h', 't'].map((part) => put(`${key}/${part}`, VALUE, this.#lease)),
      failure: [],
    })
    if (!answer.succeeded) throw new Error('a key of its own was held')
    return answer.revision
  }

  async release(key: string, revision: bigint): Promise<void> {
    const answer = await this.#client.txn({
      compare: [unchangedSince(`${key}/l`, revision)],
      success: ['l', 'h', 't'].map((part) => remove(`${key}/${part}`)),
      failure: [],
    })
    if (!answer.succeeded) throw new Error('it was not its own')
  }

  [Symbol.dispose](): void {
    this.#client.close()
  }
}

/** As long as a lock's record. */
const VALUE = 'x'.repeat(180)
