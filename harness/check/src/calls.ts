import type { Operation } from '@dlock/model'

/** What may come next. */
export interface Frontier {
  /** The known calls not yet in order that began before any of them ended. */
  readonly window: readonly number[]
  /** When the first of them ends: the latest instant at which the next call can take effect. */
  readonly horizon: number
  /** The unknown calls that have begun by then. */
  readonly unknown: readonly number[]
}

/**
 * The calls of a history, and which of the known ones are in order so far. They are numbered in
 * order of their beginning, the known ones first. An unknown call is never done: it may take effect
 * again.
 */
export class Calls {
  readonly #all: readonly Operation[]
  /** How many of them are known. */
  readonly #known: number
  readonly #done: Uint8Array
  readonly #tokens: readonly (bigint | undefined)[]
  /** The known calls with a token in order of their tokens, and which of those are in order. */
  readonly #byToken: readonly number[]
  readonly #rankOf: ReadonlyMap<number, number>
  readonly #doneByToken: Uint8Array
  /** How many known calls are in order. */
  #doneCount = 0
  /** How many known calls of each session are not, of those that depend on what it holds. */
  readonly #leftOf = new Map<string, number>()

  constructor(operations: readonly Operation[]) {
    const sorted = operations.toSorted((a, b) => a.invokedAt - b.invokedAt)
    const known = sorted.filter(isKnown)
    this.#all = [...known, ...sorted.filter(isUnknown)]
    this.#known = known.length
    this.#done = new Uint8Array(this.#known)
    this.#tokens = known.map(tokenOf)
    this.#byToken = [...known.keys()]
      .filter((index) => this.#tokens[index] !== undefined)
      .sort((a, b) => compare(this.#tokens[a] ?? 0n, this.#tokens[b] ?? 0n))
    this.#rankOf = new Map(this.#byToken.map((index, rank) => [index, rank]))
    this.#doneByToken = new Uint8Array(this.#byToken.length)
    for (const op of known) this.#addLeft(op, 1)
  }

  get allDone(): boolean {
    return this.#doneCount === this.#known
  }

  get knownDone(): number {
    return this.#doneCount
  }

  /** The lowest token of a known `ok` that is not in order yet. */
  get lowestToken(): bigint | undefined {
    const index = this.#byToken[this.#doneByToken.indexOf(0)]
    return index === undefined ? undefined : this.#tokens[index]
  }

  at(index: number): Operation {
    const op = this.#all[index]
    if (op === undefined) throw new RangeError(`there is no call ${index}`)
    return op
  }

  /** The token whose turn it has to be for this call. */
  tokenOf(index: number): bigint | undefined {
    return this.#tokens[index]
  }

  /** Some known call is left for which it matters whether this session holds the key. */
  isAwaited(session: string): boolean {
    return (this.#leftOf.get(session) ?? 0) > 0
  }

  place(index: number): void {
    if (index < this.#known) this.#mark(index, 1)
  }

  takeBack(index: number): void {
    if (index < this.#known) this.#mark(index, 0)
  }

  frontier(): Frontier {
    let horizon = Number.POSITIVE_INFINITY
    const begun: number[] = []
    for (let index = this.#first(); index < this.#known; index += 1) {
      const op = this.at(index)
      if (op.invokedAt > horizon) break
      if (this.#done[index] === 1) continue
      horizon = Math.min(horizon, op.endedAt)
      begun.push(index)
    }
    const unknown: number[] = []
    for (let index = this.#known; index < this.#all.length; index += 1) {
      if (this.at(index).invokedAt > horizon) break
      unknown.push(index)
    }
    return {
      window: begun.filter((index) => this.at(index).invokedAt <= horizon),
      horizon,
      unknown,
    }
  }

  /** Equal for places with the same calls in order: all up to the first that is not, then with gaps. */
  get doneKey(): string {
    const first = this.#first()
    let gaps = ''
    for (let index = first, left = this.#doneCount - first; left > 0; index += 1) {
      gaps += this.#done[index]
      left -= this.#done[index] ?? 0
    }
    return `${first}.${gaps}`
  }

  #mark(index: number, done: 0 | 1): void {
    this.#done[index] = done
    this.#doneCount += done === 1 ? 1 : -1
    this.#addLeft(this.at(index), done === 1 ? -1 : 1)
    const rank = this.#rankOf.get(index)
    if (rank !== undefined) this.#doneByToken[rank] = done
  }

  #addLeft({ f, session }: Operation, count: number): void {
    if (f !== 'acquire' && f !== 'close') return
    this.#leftOf.set(session, (this.#leftOf.get(session) ?? 0) + count)
  }

  #first(): number {
    const first = this.#done.indexOf(0)
    return first < 0 ? this.#known : first
  }
}

/** It took effect, or the service said why not. A failure without a reason proves nothing. */
function isKnown(op: Operation): boolean {
  return op.type === 'ok' || (op.type === 'fail' && op.refused)
}

/** A renewal of which nothing is known can only have made a lease longer, which is allowed anyway. */
function isUnknown(op: Operation): boolean {
  return op.type === 'info' && op.f !== 'renew'
}

function tokenOf(op: Operation): bigint | undefined {
  return op.type === 'ok' && op.f !== 'close' ? op.token : undefined
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
