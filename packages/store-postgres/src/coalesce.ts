import { setImmediate } from 'node:timers'
import { ContentionError } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import { type Executor, lockWaitMs, type Row, toldOf } from './execute.ts'
import { type AskStatement, parameters } from './statement.ts'
import { StatementFailure } from './translate-error.ts'

/** One kind of call, made of many callers' asks in one statement. */
export interface Kind<Ask, Answer> {
  readonly statement: AskStatement
  /** No two asks of one statement share it. */
  keyOf(ask: Ask): string
  /** The ask's columns, as text. */
  row(ask: Ask): readonly string[]
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
  sent: boolean
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
 * Nobody waits for company: when there is room for another statement it leaves at the end of the
 * turn, with whoever is there; calls gather only behind statements in flight. Callers do not suffer
 * for each other: when a statement failed and changed nothing, its members are tried one by one.
 * When it may have happened, each is told so. Every call is answered by its own deadline.
 */
export class Coalescer<Ask, Answer> {
  readonly #kind: Kind<Ask, Answer>
  readonly #executor: Executor
  readonly #limits: CoalescerLimits
  readonly #clock: Clock
  #waiting: Member<Ask, Answer>[] = []
  /** In the order of their deadlines, since every call has the same time. */
  readonly #unanswered = new Set<Member<Ask, Answer>>()
  #inFlight = 0
  #leaving = false
  #alarmIsSet = false

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
      const member = { ask, untilNanos, answered: false, sent: false, resolve, reject }
      this.#waiting.push(member)
      this.#unanswered.add(member)
      this.#setAlarm()
      this.#leaveSoon()
    })
  }

  /** Not before the end of the turn: whoever asks in the same turn comes along. */
  #leaveSoon(): void {
    if (this.#leaving || this.#inFlight >= this.#limits.statements) return
    this.#leaving = true
    setImmediate(() => {
      this.#leaving = false
      while (this.#waiting.length > 0 && this.#inFlight < this.#limits.statements) {
        this.#inFlight += 1
        void this.#serve(this.#nextBatch()).finally(() => {
          this.#inFlight -= 1
          if (this.#waiting.length > 0) this.#leaveSoon()
        })
      }
    })
  }

  /** The first waiting call of each key; a second one for the same key waits for the next batch. */
  #nextBatch(): Member<Ask, Answer>[] {
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

  async #serve(batch: readonly Member<Ask, Answer>[]): Promise<void> {
    if (batch.length === 0) return
    try {
      await this.#send(
        batch,
        batch.length === 1 ? lockWaitMs : (leftMs) => leftMs * BATCH_LOCK_WAIT,
      )
    } catch (failure) {
      const alone = batch.length === 1
      const again = !alone && failure instanceof StatementFailure && failure.fate === 'not-applied'
      if (again) await this.#serveOneByOne(batch)
      else for (const member of batch) this.#reject(member, toldOf(failure))
    }
  }

  /** A few at once, so that whoever is still blocked does not take the others' time. */
  async #serveOneByOne(members: readonly Member<Ask, Answer>[]): Promise<void> {
    const next = members.values()
    const lane = async (): Promise<void> => {
      for (const member of next) if (!member.answered) await this.#serve([member])
    }
    await Promise.all(Array.from({ length: ALONE_AT_ONCE }, lane))
  }

  /** @throws StatementFailure */
  async #send(
    batch: readonly Member<Ask, Answer>[],
    lockMsOf: (leftMs: number) => number,
  ): Promise<void> {
    const asks = batch.map((member) => member.ask)
    const sentNanos = this.#clock.monotonicNanos()
    // The last one joined last, so it has the most time.
    const untilNanos = batch.at(-1)?.untilNanos ?? sentNanos
    const lockMs = Math.max(1, Math.floor(lockMsOf(Number(untilNanos - sentNanos) / 1_000_000)))
    for (const member of batch) member.sent = true
    const { one, many, columns } = this.#kind.statement
    const values = parameters(columns, asks.map(this.#kind.row), lockMs)
    const rows = await this.#executor.attempt(batch.length === 1 ? one : many, values, untilNanos)
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
    this.#unanswered.delete(member)
  }

  /** One timer for all: it is set for the earliest deadline, and set again when it fires. */
  #setAlarm(): void {
    const [first] = this.#unanswered
    if (this.#alarmIsSet || first === undefined) return
    this.#alarmIsSet = true
    const leftMs = Number(first.untilNanos - this.#clock.monotonicNanos()) / 1_000_000
    this.#clock.setTimer(leftMs, () => {
      this.#alarmIsSet = false
      this.#giveUpLate()
      this.#setAlarm()
    })
  }

  #giveUpLate(): void {
    const now = this.#clock.monotonicNanos()
    for (const member of this.#unanswered) {
      if (member.untilNanos > now) break
      const fate = member.sent ? 'the change may have happened' : 'nothing was changed'
      this.#reject(
        member,
        new ContentionError(`PostgreSQL could not decide: no answer within the deadline; ${fate}`),
      )
    }
  }
}
