import type { Random, Timer } from '@dlock/system'
import type { EtcdClient } from './etcd-client.ts'
import { EtcdError } from './etcd-error.ts'
import { type KeyValue, keyValueOf, prefixEnd } from './txn.ts'
import type { WireWatchResponse } from './wire.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

export interface DeleteWatchOptions {
  readonly client: EtcdClient
  readonly random: Random
  readonly prefix: string
  /** The first revision whose deletions are wanted. */
  readonly fromRevision: bigint
  /** A key was deleted; `before` is what it held, unless that was compacted away. */
  readonly onDeleted: (key: string, before: KeyValue | undefined) => void
  /** Deletions may have been missed: history was compacted away, or the cluster was restored. */
  readonly onGap: () => void
}

/**
 * One watch on every deletion under a prefix, for as long as the process wants it. A broken stream
 * resumes, at another member, behind the last revision that was **delivered**: never at "now", and
 * never at the revision in the answer to its own creation, which may be ahead of what is still to
 * come. When that revision has been compacted it says there is a gap and goes on from what is left.
 */
export class DeleteWatch {
  readonly #options: DeleteWatchOptions
  #nextRevision: bigint
  #pauseMs = FIRST_PAUSE_MS
  #stream: Awaited<ReturnType<EtcdClient['openWatch']>>['stream'] | undefined
  #timer: Timer | undefined
  #closed = false
  #onCreated: (() => void) | undefined
  /** Resolves when etcd has confirmed the watch for the first time. */
  readonly created: Promise<void>

  constructor(options: DeleteWatchOptions) {
    this.#options = options
    this.#nextRevision = options.fromRevision
    this.created = new Promise((resolve) => {
      this.#onCreated = resolve
    })
    void this.#connect()
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#stream?.cancel()
  }

  async #connect(): Promise<void> {
    const { client, prefix } = this.#options
    let ended = false
    try {
      const { stream, failed } = await client.openWatch()
      if (this.#closed) {
        stream.on('error', () => {})
        stream.cancel()
        return
      }
      this.#stream = stream
      const onEnd = (): void => {
        if (ended) return
        ended = true
        failed()
        this.#reconnect()
      }
      stream.on('error', onEnd)
      stream.on('end', onEnd)
      stream.on('data', (data: object) => {
        if (!ended && !this.#hear(data as WireWatchResponse)) {
          onEnd()
          stream.cancel()
        }
      })
      stream.write({
        createRequest: {
          key: Buffer.from(prefix),
          rangeEnd: prefixEnd(prefix),
          startRevision: String(this.#nextRevision),
          filters: ['NOPUT'],
          prevKv: true,
          progressNotify: true,
        },
      })
    } catch (error) {
      // Signing in failed; the next try may reach a member that can.
      if (!(error instanceof EtcdError)) throw error
      this.#reconnect()
    }
  }

  /** @returns false when the stream is of no more use */
  #hear(response: WireWatchResponse): boolean {
    const revision = BigInt(response.header?.revision ?? 0)
    if (response.canceled) {
      const compacted = BigInt(response.compactRevision)
      if (compacted > 0n) {
        this.#nextRevision = compacted
        this.#options.onGap()
      }
      return false
    }
    if (response.created) {
      // A restored cluster is younger than what was already seen: its history is another one.
      if (revision < this.#nextRevision - 1n) {
        this.#nextRevision = revision + 1n
        this.#options.onGap()
        return false
      }
      this.#pauseMs = FIRST_PAUSE_MS
      this.#onCreated?.()
      return true
    }
    for (const event of response.events) {
      this.#nextRevision = BigInt(event.kv.modRevision) + 1n
      const before = event.prevKv === null ? undefined : keyValueOf(event.prevKv)
      this.#options.onDeleted(event.kv.key.toString(), before)
    }
    // An answer without events is etcd's word that everything up to its revision was delivered.
    if (response.events.length === 0 && revision >= this.#nextRevision) {
      this.#nextRevision = revision + 1n
    }
    return true
  }

  #reconnect(): void {
    if (this.#closed) return
    const pause = this.#options.random.next() * this.#pauseMs
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    this.#timer = this.#options.client.clock.setTimer(pause, () => void this.#connect())
  }
}
