import { admits, advance, continues, type FencingRule, permits } from '@dlock/guard'
import type { Breakage } from './broken-builds.ts'
import type { Journal } from './journal.ts'
import type { Machine } from './machine.ts'

/** What the resource answers. `version`: as of this write. */
export type Answer =
  | { readonly kind: 'accepted'; readonly version: number }
  | { readonly kind: 'fenced-out'; readonly fence: bigint }

/** What of a key's record the disk keeps. */
interface Row {
  fence: bigint
  /** How often the row was written under a claim: a write names the version that it read. */
  version: number
  /** Requests that were accepted, with their answers: a repeated one is answered, not repeated. */
  readonly answers: Map<string, Answer>
  /** What the watcher saw, whatever the guard remembers. */
  highestAccepted: bigint
  seenFence: bigint
  acceptedAt: number
}

/**
 * A resource that trusts nobody, with the shipped rules as its guard: a grant **claims** the row
 * (`admits`), then **writes** to it what it computed from what it read (`continues`), and **puts**
 * beside it what may be put again (`permits`). All three under one fence per key (P-26).
 *
 * Its watcher looks at effects alone: a write under a token below one that was accepted before
 * (INV-05), a claim by a token that has been used, and an update that is lost because somebody else
 * wrote in between (INV-01). It knows nothing of who believes what.
 */
export class GuardedResource {
  readonly machine: Machine
  readonly #journal: Journal
  readonly #breakage: Breakage
  readonly #rows = new Map<string, Row>()

  constructor(machine: Machine, journal: Journal, breakage: Breakage) {
    this.machine = machine
    this.#journal = journal
    this.#breakage = breakage
  }

  claim(key: string, token: bigint, requestId: string): Promise<Answer> {
    const isPlain = this.#breakage.claimIsPlain === true
    // Whoever trusts an equal token to be a replay remembers no request.
    const id = isPlain ? `${requestId} at ${this.#journal.nowNanos}` : requestId
    return this.#decide(key, token, id, isPlain ? permits : admits, (row) => {
      if (token <= row.highestAccepted) {
        this.#journal.violate('INV-01', `${key}: ${token} claimed after ${row.highestAccepted}`)
      }
      return row.version
    })
  }

  write(key: string, token: bigint, requestId: string, readVersion: number): Promise<Answer> {
    return this.#decide(key, token, requestId, continues, (row) => {
      if (row.version !== readVersion) {
        const lost = `${readVersion} was read, ${row.version} is overwritten`
        this.#journal.violate('INV-01', `${key}: an update is lost under ${token}: ${lost}`)
      }
      row.version += 1
      return row.version
    })
  }

  put(key: string, token: bigint, requestId: string): Promise<Answer> {
    return this.#decide(key, token, requestId, permits, ({ version }) => version)
  }

  /** An operator pushes a floor (decision 5). */
  async push(key: string, floor: bigint): Promise<bigint> {
    const row = this.#row(key)
    row.fence = advance(row.fence, floor)
    if (floor > row.highestAccepted) row.highestAccepted = floor
    return row.fence
  }

  /** INV-05: a fence never goes back. */
  checkFences(): void {
    for (const [key, row] of this.#rows) {
      if (row.fence < row.seenFence) {
        this.#journal.violate('INV-05', `the fence of ${key} fell to ${row.fence}`)
      }
      row.seenFence = row.fence
    }
  }

  /** When something of `key` was accepted last, in nanoseconds of true time; 0 for never. */
  acceptedAt(key: string): number {
    return this.#row(key).acceptedAt
  }

  highestFence(): bigint {
    let highest = 0n
    for (const { fence } of this.#rows.values()) if (fence > highest) highest = fence
    return highest
  }

  /** A new process over what the disk has. */
  restart(): void {
    this.machine.start()
    if (this.#breakage.fenceInMemory !== true) return
    for (const row of this.#rows.values()) row.fence = 0n
  }

  async #decide(
    key: string,
    token: bigint,
    requestId: string,
    rule: FencingRule,
    write: (row: Row) => number,
  ): Promise<Answer> {
    const row = this.#row(key)
    const repeated = row.answers.get(requestId)
    if (repeated !== undefined) return repeated
    const { fenceIsOff, readThenWrite } = this.#breakage
    if (!rule(row.fence, token) && fenceIsOff !== true) {
      this.#journal.count('fenced out', `${key} ${token} below ${row.fence}`)
      return { kind: 'fenced-out', fence: row.fence }
    }
    if (readThenWrite !== undefined) await this.#dawdle(readThenWrite)
    row.fence = token
    if (token < row.highestAccepted) {
      this.#journal.violate('INV-05', `${key}: ${token} wrote after ${row.highestAccepted}`)
    }
    const answer: Answer = { kind: 'accepted', version: write(row) }
    if (token > row.highestAccepted) row.highestAccepted = token
    row.acceptedAt = this.#journal.nowNanos
    row.answers.set(requestId, answer)
    this.#journal.count('accepted', `${key} ${token} ${requestId} v${row.version}`)
    return answer
  }

  #dawdle(ms: number): Promise<void> {
    return new Promise((resolve) => this.machine.clock().setTimer(ms, resolve))
  }

  #row(key: string): Row {
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const row = {
      fence: 0n,
      version: 0,
      answers: new Map<string, Answer>(),
      highestAccepted: 0n,
      seenFence: 0n,
      acceptedAt: 0,
    }
    this.#rows.set(key, row)
    return row
  }
}
