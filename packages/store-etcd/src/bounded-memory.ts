/** Remembers at most so many entries, and forgets the one that was not touched for the longest. */
export class BoundedMemory<Value> {
  readonly #entries = new Map<string, Value>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get(name: string): Value | undefined {
    const value = this.#entries.get(name)
    if (value !== undefined) this.set(name, value)
    return value
  }

  set(name: string, value: Value): void {
    this.#entries.delete(name)
    this.#entries.set(name, value)
    if (this.#entries.size <= this.#capacity) return
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest)
      return
    }
  }

  delete(name: string): void {
    this.#entries.delete(name)
  }
}
