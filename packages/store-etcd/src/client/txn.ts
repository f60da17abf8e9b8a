import type { WireKeyValue, WireResponse, WireTxnResponse } from './wire.ts'

/**
 * A transaction as a value: comparisons, then one of two lists of operations. Nested transactions
 * are operations, and everything in one transaction happens at one revision.
 */
export interface Txn {
  readonly compare: readonly Compare[]
  readonly success: readonly Op[]
  readonly failure: readonly Op[]
}

export interface Compare {
  readonly key: Buffer
  /** With it, the comparison is of every key from `key` to below this. */
  readonly rangeEnd?: Buffer
  readonly target: 'CREATE' | 'MOD'
  readonly result: 'EQUAL' | 'GREATER'
  readonly createRevision?: string
  readonly modRevision?: string
}

export type Op =
  | {
      readonly requestPut: { readonly key: Buffer; readonly value: Buffer; readonly lease: string }
    }
  | { readonly requestRange: RangeRequest }
  | { readonly requestDeleteRange: { readonly key: Buffer } }
  | { readonly requestTxn: Txn }

export interface RangeRequest {
  readonly key: Buffer
  readonly rangeEnd?: Buffer
  readonly limit?: string
  readonly countOnly?: boolean
  readonly keysOnly?: boolean
}

const NO_LEASE = '0'

export function exists(key: string): Compare {
  return { key: Buffer.from(key), target: 'CREATE', result: 'GREATER', createRevision: '0' }
}

export function absent(key: string): Compare {
  return { key: Buffer.from(key), target: 'CREATE', result: 'EQUAL', createRevision: '0' }
}

/** True while the key is as the write at `revision` left it: the compare of compare-and-swap. */
export function unchangedSince(key: string, revision: bigint): Compare {
  return { key: Buffer.from(key), target: 'MOD', result: 'EQUAL', modRevision: String(revision) }
}

export function put(key: string, value: string, leaseId: string = NO_LEASE): Op {
  return { requestPut: { key: Buffer.from(key), value: Buffer.from(value), lease: leaseId } }
}

export function get(key: string): Op {
  return { requestRange: { key: Buffer.from(key) } }
}

/** Every key from `key` to below `end`, without its value. */
export function listKeys(key: string, end: Buffer): Op {
  return { requestRange: { key: Buffer.from(key), rangeEnd: end, keysOnly: true } }
}

export function remove(key: string): Op {
  return { requestDeleteRange: { key: Buffer.from(key) } }
}

export function nested(txn: Txn): Op {
  return { requestTxn: txn }
}

/** The least key above every key that begins with `prefix`. */
export function prefixEnd(prefix: string): Buffer {
  const end = Buffer.from(prefix)
  for (let last = end.length - 1; last >= 0; last -= 1) {
    const byte = end[last] ?? 0xff
    if (byte === 0xff) continue
    end[last] = byte + 1
    return end.subarray(0, last + 1)
  }
  return Buffer.from([0])
}

/** A stored key with its value and the revisions that name its writes. */
export interface KeyValue {
  readonly key: string
  readonly value: string
  readonly createRevision: bigint
  readonly modRevision: bigint
  /** The id of the lease that it hangs on; `"0"` for none. */
  readonly lease: string
}

export function keyValueOf(wire: WireKeyValue): KeyValue {
  return {
    key: wire.key.toString(),
    value: wire.value.toString(),
    createRevision: BigInt(wire.createRevision),
    modRevision: BigInt(wire.modRevision),
    lease: wire.lease,
  }
}

/** What became of one transaction. */
export class TxnAnswer {
  readonly succeeded: boolean
  /** The revision at which it happened: of its writes, when it made any. */
  readonly revision: bigint
  readonly #responses: readonly WireResponse[]

  constructor(wire: WireTxnResponse, revision: bigint) {
    this.succeeded = wire.succeeded
    this.revision = revision
    this.#responses = wire.responses
  }

  /** What the `index`th operation, a `get`, found. */
  got(index: number): KeyValue | undefined {
    const found = this.#responses[index]?.responseRange?.kvs[0]
    return found === undefined ? undefined : keyValueOf(found)
  }

  /** What the `index`th operation, a `listKeys`, found. */
  listed(index: number): readonly KeyValue[] {
    return (this.#responses[index]?.responseRange?.kvs ?? []).map(keyValueOf)
  }

  /** What became of the `index`th operation, a nested transaction. */
  nested(index: number): TxnAnswer {
    const inner = this.#responses[index]?.responseTxn
    if (inner === undefined) throw new Error(`response ${index} is not a transaction's`)
    return new TxnAnswer(inner, this.revision)
  }
}
