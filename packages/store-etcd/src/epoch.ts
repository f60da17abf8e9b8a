import { checkFencingToken, NotLeaderError } from '@dlock/lock-api'
import type { EtcdClient } from './client/etcd-client.ts'
import { absent, type Compare, get, type KeyValue, put, unchangedSince } from './client/txn.ts'
import type { Header } from './client/wire.ts'
import type { KeySpace } from './key-space.ts'
import { encode, type MetaRecord, metaRecordOf } from './records.ts'

/**
 * The restore epoch. etcd's revision is the token, and a restored snapshot rewinds it, silently for
 * everybody who was connected. So this process refuses to serve, and says why, once it sees a
 * cluster with another id than `meta` names, or a linearizable answer from a revision below one
 * that it had seen when it asked. It serves again after `advance`: an operator's word that later
 * tokens are above every token used before (`dlock tokens advance`).
 *
 * Not detected: a rewind that was overtaken by new writes before any process of ours looked.
 */
export class Epoch {
  readonly #client: EtcdClient
  readonly #keys: KeySpace
  #meta: { readonly record: MetaRecord; readonly revision: bigint } | undefined
  #clusterId: string | undefined
  #refusal: string | undefined

  constructor(client: EtcdClient, keys: KeySpace) {
    this.#client = client
    this.#keys = keys
    client.onHeader((header, revisionBefore) => this.#judge(header, revisionBefore))
  }

  get tokenOffset(): string {
    return this.#current().record.tokenOffset
  }

  /** Every acquire compares this: a token is only minted under the offset that it is counted from. */
  get unchanged(): Compare {
    return unchangedSince(this.#keys.meta, this.#current().revision)
  }

  /** Whether `meta`, as a transaction has just found it, is the one known here. */
  isCurrent(meta: KeyValue | undefined): boolean {
    return meta?.modRevision === this.#current().revision
  }

  /**
   * Another process may have been told in the meantime: a raised epoch that names this cluster.
   *
   * @throws NotLeaderError while the cluster may be a restored one
   */
  async requireServing(): Promise<void> {
    const refusal = this.#refusal
    if (refusal === undefined) return
    const known = this.#meta?.record.epoch ?? 0
    this.#client.forgetRevisions()
    await this.load()
    const { record } = this.#current()
    if (record.epoch <= known || record.clusterId !== this.#clusterId) {
      this.#refusal = refusal
      throw new NotLeaderError(refusal)
    }
    this.#refusal = undefined
  }

  /**
   * Reads `meta`, or writes the first one.
   *
   * @param onlyCluster the id of the cluster that it must be, in hexadecimal, if that matters
   * @throws NotLeaderError when it is another; nothing was written
   */
  async load(onlyCluster?: string): Promise<void> {
    const { revision } = await this.#client.range({ key: Buffer.from(this.#keys.meta) })
    const clusterId = this.#clusterId ?? ''
    const hexId = BigInt(clusterId).toString(16)
    if (onlyCluster !== undefined && hexId !== onlyCluster.toLowerCase()) {
      throw new NotLeaderError(`this is cluster ${hexId}, and ${onlyCluster} was expected`)
    }
    const first: MetaRecord = { clusterId, epoch: 1, tokenOffset: '0' }
    const answer = await this.#client.txn({
      compare: [absent(this.#keys.meta)],
      success: [put(this.#keys.meta, encode(first)), get(this.#keys.meta)],
      failure: [get(this.#keys.meta)],
    })
    const stored = answer.got(answer.succeeded ? 1 : 0)
    if (stored === undefined) throw new Error(`${this.#keys.meta} is missing at ${revision}`)
    this.#meta = { record: metaRecordOf(stored), revision: stored.modRevision }
    if (this.#meta.record.clusterId !== clusterId) {
      this.#refuse(`it is cluster ${clusterId}, not ${this.#meta.record.clusterId}`)
    }
  }

  /** Every token issued so far is at most this. */
  async highestToken(): Promise<bigint> {
    const { revision } = await this.#client.range({ key: Buffer.from(this.#keys.meta) })
    return BigInt(this.tokenOffset) + revision
  }

  /** Raises the offset so that every later token exceeds `above`. Forward only. */
  async advance(above: bigint): Promise<bigint> {
    for (;;) {
      this.#client.forgetRevisions()
      await this.load()
      const { record, revision } = this.#current()
      const now = (await this.#client.range({ key: Buffer.from(this.#keys.meta) })).revision
      // Revisions are far below 2^62, so that much must be left above the offset for them.
      const raised =
        above > BigInt(record.tokenOffset) + now ? above - now : BigInt(record.tokenOffset)
      checkFencingToken(raised + now + ROOM_FOR_TOKENS, 'above plus the room for later tokens')
      const next: MetaRecord = {
        clusterId: this.#clusterId ?? '',
        epoch: record.epoch + 1,
        tokenOffset: String(raised),
      }
      const answer = await this.#client.txn({
        compare: [unchangedSince(this.#keys.meta, revision)],
        success: [put(this.#keys.meta, encode(next))],
        failure: [],
      })
      if (!answer.succeeded) continue
      this.#meta = { record: next, revision: answer.revision }
      this.#refusal = undefined
      return raised + answer.revision
    }
  }

  #current(): { readonly record: MetaRecord; readonly revision: bigint } {
    if (this.#meta === undefined) throw new NotLeaderError('the store has not been started')
    return this.#meta
  }

  #judge({ clusterId, revision }: Header, revisionBefore: bigint): void {
    if (this.#clusterId !== undefined && this.#clusterId !== clusterId) {
      this.#refuse(`it is cluster ${clusterId}, and was ${this.#clusterId}`)
    }
    this.#clusterId = clusterId
    if (BigInt(revision) < revisionBefore) {
      this.#refuse(`it is at revision ${revision}, and was at ${revisionBefore}`)
    }
  }

  #refuse(why: string): void {
    this.#refusal = `etcd looks restored: ${why}. No lock is granted until an operator has raised the tokens above every one used before: dlock tokens advance --above N`
  }
}

/** Tokens that must be left after an advance: as many as etcd makes revisions in a long life. */
const ROOM_FOR_TOKENS = 2n ** 48n
