import { nextTick } from 'node:process'
import type { Clock } from '@dlock/system'
import { type Executor, lockWaitMs, type Row, type Send, toldOf } from './execute.ts'
import { type AskStatement, parameters } from './statement.ts'
import { StatementFailure, timedOut } from './translate-error.ts'

/** One kind of call, made of many callers' asks in one statement. */
export interface Kind<Ask, Answer> {
  readonly statement: AskStatement
  /** No two asks of one statement share it. */
  keyOf(ask: Ask): string
  /** The ask's columns, as text. */
  readonly row: (ask: Ask) => readonly string[]
  /** In the order of the asks. `sentNanos`: the monotonic clock just before the statement left. */
  answers(asks: readonly Ask[], rows: readonly Row[], sentNanos: bigint): readonly Answer[]
}

export interface CoalescerLimits {
  /** Statements of this kind in flight at once. */
  readonly statements: number
  /** Asks in one statement. */
  readonly asks: number
}

interface Member<Ask, Answer> {
  readonly ask: Ask
  readonly untilNanos: bigint
  answered: boolean
  /** It is part of a statement: from then on it may happen. */
  sent: boolean
  readonly stopWatching: () => void
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** When a batch failed, so many of its members are tried again side by side. */
const ALONE_AT_ONCE = 4
/** A batch waits for a locked row for this part of a call's time: its members need the rest. */
const BATCH_LOCK_WAIT = 0.25

/**
 * Makes one statement of the calls of one kind that are waiting to be sent, so that one round trip
 * and one flush of the log serve them all.
 *
 * Nobody waits for company: when there is room for another statement it leaves as soon as there is
 * a connection, with whoever is there by then; calls gather only behind statements in flight. Callers do not suffer
 * for each other: when a statement failed and changed nothing, its members are tried one by one.
 * When it may have happened, each is told so. Every call is answered by its own deadline.
 */
export class Coalescer<Ask, Answer> {
  readonly #kind: Kind<Ask, Answer>
  readonly #executor: Executor
  readonly #limits: CoalescerLimits
  readonly #clock: Clock
  #waiting: Member<Ask, Answer>[] = []
  #inFlight = 0
  #leaving = false

  constructor(kind: Kind<Ask, Answer>, executor: Executor, limits: CoalescerLimits) {
    this.#kind = kind
    this.#executor = executor
    this.#limits = limits
    this.#clock = executor.clock
  }

  /** @throws ContentionError, NotLeaderError */
  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const untilNanos = this.#executor.deadline()
      const member: Member<Ask, Answer> = {
        ask,
        untilNanos,
        answered: false,
        sent: false,
        stopWatching: this.#executor.deadlines.watch(untilNanos, () => {
          this.#reject(member, timedOut(member.sent ? 'unknown' : 'not-applied').told)
        }),
        resolve,
        reject,
      }
      this.#waiting.push(member)
      this.#leaveSoon()
    })
  }

  /** After the promise chains that are running now: who asks in one of them comes along. */
  #leaveSoon(): void {
    if (this.#leaving || this.#inFlight >= this.#limits.statements) return
    this.#leaving = true
    nextTick(() => {
      this.#leaving = false
      this.#inFlight += 1
      void this.#serveBatch().finally(() => {
        this.#inFlight -= 1
        if (this.#waiting.length > 0) this.#leaveSoon()
      })
      if (this.#waiting.length > this.#limits.asks) this.#leaveSoon()
    })
  }

  /** Who comes along is settled when there is a connection; until then nothing can happen. */
  async #serveBatch(): Promise<void> {
    let batch: readonly Member<Ask, Answer>[] | undefined
    try {
      await this.#executor.withConnection(async (send) => {
        batch = this.#takeBatch()
        if (batch.length > 0) await this.#sendTogether(send, batch)
      })
    } catch (failure) {
      const failed = batch ?? this.#takeBatch()
      const undone = failure instanceof StatementFailure && failure.fate === 'not-applied'
      if (batch && batch.length > 1 && undone) await this.#serveOneByOne(batch)
      else for (const member of failed) this.#reject(member, toldOf(failure))
    }
  }

  /** The first waiting call of each key; a second one for the same key waits for the next batch. */
  #takeBatch(): Member<Ask, Answer>[] {
    const batch = new Map<string, Member<Ask, Answer>>()
    const rest: Member<Ask, Answer>[] = []
    for (const member of this.#waiting) {
      if (member.answered) continue
      const key = this.#kind.keyOf(member.ask)
      if (batch.size < this.#limits.asks && !batch.has(key)) batch.set(key, member)
      else rest.push(member)
    }
    this.#waiting = rest
    return [...batch.values()]
  }

  /** A few at once, so that whoever is still blocked does not take the others' time. */
  async #serveOneByOne(members: readonly Member<Ask, Answer>[]): Promise<void> {
    const next = members.values()
    const lane = async (): Promise<void> => {
      for (const member of next) if (!member.answered) await this.#serveAlone(member)
    }
    await Promise.all(Array.from({ length: ALONE_AT_ONCE }, lane))
  }

  async #serveAlone(member: Member<Ask, Answer>): Promise<void> {
    try {
      await this.#executor.withConnection(
        (send) => this.#sendTogether(send, [member]),
        member.untilNanos,
      )
    } catch (failure) {
      this.#reject(member, toldOf(failure))
    }
  }

  /** @throws StatementFailure */
  async #sendTogether(send: Send, batch: readonly Member<Ask, Answer>[]): Promise<void> {
    const asks = batch.map((member) => member.ask)
    for (const member of batch) member.sent = true
    const sentNanos = this.#clock.monotonicNanos()
    // The last one joined last, so it has the most time.
    const untilNanos = batch.at(-1)?.untilNanos ?? sentNanos
    const leftMs = Number(untilNanos - sentNanos) / 1_000_000
    const { one, many, columns } = this.#kind.statement
    const alone = batch.length === 1
    const lockMs = lockWaitMs(alone ? leftMs : leftMs * BATCH_LOCK_WAIT)
    const values = parameters(columns, asks.map(this.#kind.row), lockMs)
    const rows = await send(alone ? one : many, values, untilNanos)
    const answers = this.#kind.answers(asks, rows, sentNanos)
    batch.forEach((member, index) => {
      this.#settle(member)
      member.resolve(answers[index] as Answer)
    })
  }

  #reject(member: Member<Ask, Answer>, error: unknown): void {
    if (member.answered) return
    this.#settle(member)
    member.reject(error)
  }

  #settle(member: Member<Ask, Answer>): void {
    member.answered = true
    member.stopWatching()
  }
}
