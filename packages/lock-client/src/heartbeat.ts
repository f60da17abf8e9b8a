import { SessionDeadError } from '@dlock/lock-api'
import { Alarm } from './alarm.ts'
import { type Pacing, retry } from './backoff.ts'
import type { LeaseClock } from './deadline.ts'
import type { HeldLocks } from './held-locks.ts'
import { heartbeatHop, timeoutMsOf } from './hops.ts'
import type { Reports } from './reports.ts'
import type { OpenedSession, Transport } from './transport.ts'

export interface HeartbeatParts extends Pacing {
  readonly transport: Transport
  readonly session: OpenedSession
  readonly leaseClock: LeaseClock
  readonly locks: HeldLocks
  readonly reports: Reports
  /** The service said so. */
  readonly onSessionDead: (error: SessionDeadError) => void
}

/**
 * One beat per period, whatever the number of locks: a request that renews the session and every
 * lock it holds at that moment. The period is a third of the shortest lease among them.
 *
 * A beat that fails loses nothing: it is tried again twice, and the next one comes in its own time
 * even while this one has no answer yet. Each answer counts from when its own request left, so
 * their order does not matter. Only a deadline, or a definite answer, loses.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts
  readonly #alarm: Alarm
  readonly #stopped = new AbortController()

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
    this.#alarm = new Alarm(parts.clock, parts.leaseClock, () => this.#beat())
  }

  /** Beats by `instant` at the latest. */
  dueBy(instant: bigint): void {
    if (!this.#stopped.signal.aborted) this.#alarm.ringBy(instant)
  }

  /** Idempotent. No beat, and no retry of one, begins after it. */
  stop(): void {
    this.#stopped.abort()
    this.#alarm.stop()
  }

  #beat(): void {
    const { locks, leaseClock, session, reports, onSessionDead } = this.#parts
    locks.sweep()
    if (this.#stopped.signal.aborted) return
    this.dueBy(leaseClock.instant() + locks.periodNanos())

    const { retries, awaited } = heartbeatHop
    const withinMs = session.ttlMs / 3
    const { signal } = this.#stopped
    retry(this.#parts, { retries, withinMs, signal, keepAlive: awaited }, () =>
      this.#ask(withinMs),
    ).catch((error: unknown) => {
      if (signal.aborted) return
      if (error instanceof SessionDeadError) onSessionDead(error)
      else reports.error(error, 'heartbeat')
    })
  }

  async #ask(timeoutMs: number): Promise<void> {
    const { transport, session, leaseClock, locks } = this.#parts
    const sentAt = leaseClock.instant()
    const patience = {
      hop: heartbeatHop,
      timeoutMs: Math.min(timeoutMs, timeoutMsOf(heartbeatHop)),
    }
    const answer = await transport.heartbeat(session, locks.renewals(), patience)
    if (!this.#stopped.signal.aborted) locks.heartbeatAnswered(sentAt, answer)
  }
}
