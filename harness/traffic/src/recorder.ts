import type { Event, Header, History } from '@dlock/model'
import type { Clock } from '@dlock/system'

/** How a call ended, as its client knows it. */
export type End = Pick<Event, 'type' | 'value' | 'until' | 'floor' | 'refused'>

/** Nobody knows. */
export const UNKNOWN: End = { type: 'info', value: null }

/** One call of a client. */
export interface Call<T> {
  readonly key: string
  readonly f: Event['f']
  /** That it names, if it does. */
  readonly token?: bigint
  readonly send: () => Promise<T>
  readonly answered: (answer: T) => End
  /** `UNKNOWN` unless the error says that it did not happen. */
  readonly failed?: (error: unknown) => End
}

/**
 * Writes down what clients do and see, as histories: a line when a call is sent, a line when its end
 * is known, by one monotonic clock. So a call's true instant always lies between its two lines,
 * however late the process is.
 */
export class Recorder {
  readonly #clock: Clock
  readonly #startNanos: bigint
  readonly #events = new Map<string, Event[]>()
  #processes = 0
  #calls = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startNanos = clock.monotonicNanos()
  }

  /** A client that makes one call at a time, for the session of that public name. */
  client(session: string): RecordedClient {
    return new RecordedClient(this, session)
  }

  /** What was seen of each key so far. A call that is still open is left open. */
  histories(header: Omit<Header, 'history' | 'key'>): History[] {
    return [...this.#events].map(([key, events]) => ({
      header: { history: 1, key, ...header },
      events: [...events],
    }))
  }

  /** A reading of the clock, as histories have it. */
  instant(nanos: bigint): number {
    return Number(nanos - this.#startNanos)
  }

  nextProcess(): number {
    this.#processes += 1
    return this.#processes
  }

  /** Writes the first line of a call, and returns how to write its second. */
  begin(
    key: string,
    about: Pick<Event, 'process' | 'session' | 'f' | 'value'>,
  ): (end: End) => void {
    this.#calls += 1
    const { process, session, f } = about
    const call = { id: this.#calls, process, session }
    this.#write(key, { ...call, type: 'invoke', f, value: about.value, time: this.#now() })
    return (end) => this.#write(key, { ...call, f, ...end, time: this.#now() })
  }

  #now(): number {
    return this.instant(this.#clock.monotonicNanos())
  }

  #write(key: string, event: Event): void {
    const events = this.#events.get(key)
    if (events === undefined) this.#events.set(key, [event])
    else events.push(event)
  }
}

/** One client's calls. After a call of which nothing is known it goes on as a new process. */
export class RecordedClient {
  readonly #recorder: Recorder
  readonly #session: string
  readonly #keys = new Set<string>()
  #process: number

  constructor(recorder: Recorder, session: string) {
    this.#recorder = recorder
    this.#session = session
    this.#process = recorder.nextProcess()
  }

  /** Makes the call and writes it down; resolves and rejects as the call does. */
  async call<T>({ key, f, token, send, answered, failed = () => UNKNOWN }: Call<T>): Promise<T> {
    this.#keys.add(key)
    const value = token === undefined ? null : `${token}`
    const about = { process: this.#process, session: this.#session, f, value }
    const end = this.#recorder.begin(key, about)
    try {
      const answer = await send()
      this.#end([end], answered(answer))
      return answer
    } catch (error) {
      this.#end([end], failed(error))
      throw error
    }
  }

  /** The end of the session, written down for every key that it had to do with. */
  async close(send: () => Promise<unknown>, answered: End): Promise<void> {
    const about = {
      process: this.#process,
      session: this.#session,
      f: 'close',
      value: null,
    } as const
    const ends = [...this.#keys].map((key) => this.#recorder.begin(key, about))
    try {
      await send()
      this.#end(ends, answered)
    } catch (error) {
      this.#end(ends, UNKNOWN)
      throw error
    }
  }

  /** As histories have it. */
  instant(nanos: bigint): number {
    return this.#recorder.instant(nanos)
  }

  #end(calls: readonly ((end: End) => void)[], end: End): void {
    for (const call of calls) call(end)
    if (end.type === 'info') this.#process = this.#recorder.nextProcess()
  }
}
