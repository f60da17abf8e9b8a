import { setImmediate as nextTurn } from 'node:timers/promises'

interface Entry {
  readonly dueNanos: number
  readonly ordinal: number
  fire: (() => void) | undefined
}

/** Something that was planned. */
export interface Planned {
  /** Idempotent. */
  cancel(): void
}

/**
 * The one true time of a run, and everything that is due in it. Nothing else moves time, and
 * nothing happens but what is due: one entry is one **step**. After each, the promise chains that
 * it started settle before the next begins, so a step is atomic to everybody.
 *
 * What is due at the same instant happens in the order in which it was planned. Instants are whole
 * nanoseconds from 0, as numbers: a run is minutes long, and exact to 2^53.
 */
export class VirtualTime {
  #nowNanos = 0
  #ordinal = 0
  readonly #heap: Entry[] = []

  get nowNanos(): number {
    return this.#nowNanos
  }

  /** Plans `fire` for an instant; one that has passed means now, after what is due now already. */
  at(dueNanos: number, fire: () => void): Planned {
    const due = Math.max(Math.ceil(dueNanos), this.#nowNanos)
    const entry: Entry = { dueNanos: due, ordinal: this.#ordinal++, fire }
    this.#push(entry)
    return { cancel: () => void (entry.fire = undefined) }
  }

  /** Plans `fire` for `ms` milliseconds from now. */
  after(ms: number, fire: () => void): Planned {
    return this.at(this.#nowNanos + ms * 1_000_000, fire)
  }

  /**
   * Takes every step that is due until `endNanos`.
   *
   * @param afterStep returns true to stop early
   * @returns how many steps that were
   */
  async run(endNanos: number, afterStep: () => boolean): Promise<number> {
    let steps = 0
    await nextTurn()
    for (let entry = this.#heap[0]; entry !== undefined; entry = this.#heap[0]) {
      if (entry.dueNanos > endNanos) break
      this.#pop()
      if (entry.fire === undefined) continue
      this.#nowNanos = entry.dueNanos
      entry.fire()
      await nextTurn()
      steps += 1
      if (afterStep()) return steps
    }
    this.#nowNanos = Math.max(this.#nowNanos, endNanos)
    return steps
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let child = heap.push(entry) - 1
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!this.#isBefore(child, parent)) return
      this.#swap(child, parent)
      child = parent
    }
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    heap[0] = last
    for (let parent = 0; ; ) {
      let least = parent
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < heap.length && this.#isBefore(child, least)) least = child
      }
      if (least === parent) return
      this.#swap(parent, least)
      parent = least
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [first, second] = [this.#heap[a], this.#heap[b]]
    if (first === undefined || second === undefined) return false
    const apart = first.dueNanos - second.dueNanos
    return apart === 0 ? first.ordinal < second.ordinal : apart < 0
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]]
    if (first === undefined || second === undefined) return
    this.#heap[a] = second
    this.#heap[b] = first
  }
}
