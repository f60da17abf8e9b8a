import { createHash } from 'node:crypto'
import type { VirtualTime } from './virtual-time.ts'

/** What must never be, and was. */
export interface Violation {
  /** `INV-04`, `FR-11`, … */
  readonly rule: string
  readonly what: string
  readonly atMs: number
}

/** What happened how often: a sweep in which nothing happened proves nothing. */
export type Tally = Map<string, number>

/**
 * The trace of a run: a line per event, with its instant. Two runs of one seed are the same when
 * their hashes are. Lines hold no session id, whose order would be the only thing that it shows.
 */
export class Journal {
  readonly violations: Violation[] = []
  readonly tally: Tally = new Map()
  readonly #time: VirtualTime
  readonly #hash = createHash('sha256')
  readonly #listener: ((line: string) => void) | undefined

  constructor(time: VirtualTime, listener?: (line: string) => void) {
    this.#time = time
    this.#listener = listener
  }

  /** True time. */
  get nowNanos(): number {
    return this.#time.nowNanos
  }

  write(text: string): void {
    const line = `${(this.#time.nowNanos / 1_000_000).toFixed(6)} ${text}`
    this.#hash.update(line).update('\n')
    this.#listener?.(line)
  }

  /** Counts `what`, and writes it down. */
  count(what: string, detail = ''): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1)
    this.write(detail === '' ? what : `${what}: ${detail}`)
  }

  violate(rule: string, what: string): void {
    this.violations.push({ rule, what, atMs: this.#time.nowNanos / 1_000_000 })
    this.write(`VIOLATION of ${rule}: ${what}`)
  }

  /** Of every line so far; ends the journal. */
  digest(): string {
    return this.#hash.digest('hex')
  }
}

/** A line for each, in order of the names. */
export function linesOf(tally: Tally): string[] {
  return [...tally].map(([what, times]) => `  ${what}: ${times}`).sort((a, b) => (a < b ? -1 : 1))
}
