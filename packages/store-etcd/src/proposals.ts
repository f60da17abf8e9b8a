import type { EtcdClient } from './client/etcd-client.ts'
import { EtcdError } from './client/etcd-error.ts'
import { nested, type Txn, type TxnAnswer } from './client/txn.ts'

/**
 * etcd counts a transaction's operations against 128, and what is nested in it against what is
 * left. Ours have at most 12.
 */
const MOST_IN_ONE = 100
/** Two, so that one is on its way while the other is answered. */
const MOST_UNDER_WAY = 2

interface Waiting {
  readonly txn: Txn
  readonly touches: readonly string[]
  readonly resolve: (answer: TxnAnswer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Independent transactions of concurrent calls share one proposal to the cluster, nested in one
 * outer transaction: one round of consensus and one disk flush pay for all. A call that comes alone
 * goes alone and waits for nobody.
 *
 * One caller's failure is its own: a shared proposal that was definitely refused (one member's
 * lease was gone, say) is repeated one by one. One whose fate is unknown is unknown for each.
 */
export class Proposals {
  readonly #client: EtcdClient
  #waiting: Waiting[] = []
  #underWay = 0
  #flushDue = false

  constructor(client: EtcdClient) {
    this.#client = client
  }

  /**
   * @param touches names what the transaction writes: etcd takes no two writes of one key in one
   *   transaction, so calls that touch the same thing go one after the other
   * @throws EtcdError
   */
  submit(txn: Txn, touches: readonly string[]): Promise<TxnAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ txn, touches, resolve, reject })
      this.#flushSoon()
    })
  }

  /** At the end of the turn, so that what was called in one turn goes together. */
  #flushSoon(): void {
    if (this.#flushDue || this.#underWay >= MOST_UNDER_WAY || this.#waiting.length === 0) return
    this.#flushDue = true
    queueMicrotask(() => {
      this.#flushDue = false
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    const batch = this.#takeBatch()
    if (batch.length === 0) return
    this.#underWay += 1
    this.#flushSoon()
    try {
      await this.#propose(batch)
    } finally {
      this.#underWay -= 1
      this.#flushSoon()
    }
  }

  #takeBatch(): Waiting[] {
    const batch: Waiting[] = []
    const later: Waiting[] = []
    const touched = new Set<string>()
    for (const call of this.#waiting) {
      if (batch.length < MOST_IN_ONE && !call.touches.some((name) => touched.has(name))) {
        batch.push(call)
      } else {
        later.push(call)
      }
      for (const name of call.touches) touched.add(name)
    }
    this.#waiting = later
    return batch
  }

  async #propose(batch: readonly Waiting[]): Promise<void> {
    const [first] = batch
    if (first === undefined) return
    if (batch.length === 1) {
      await this.#proposeAlone(first)
      return
    }
    try {
      const shared = { compare: [], success: batch.map(({ txn }) => nested(txn)), failure: [] }
      const answer = await this.#client.txn(shared)
      batch.forEach(({ resolve }, index) => resolve(answer.nested(index)))
    } catch (error) {
      if (error instanceof EtcdError && isOneMembersFault(error)) {
        await Promise.all(batch.map((call) => this.#proposeAlone(call)))
      } else {
        for (const { reject } of batch) reject(error)
      }
    }
  }

  async #proposeAlone({ txn, resolve, reject }: Waiting): Promise<void> {
    try {
      resolve(await this.#client.txn(txn))
    } catch (error) {
      reject(error)
    }
  }
}

/** Refused whole because of one member: its lease was gone, or it was the one that needs space. */
function isOneMembersFault({ kind }: EtcdError): boolean {
  return kind === 'lease-gone' || kind === 'exhausted' || kind === 'invalid' || kind === 'denied'
}
