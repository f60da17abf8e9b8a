import type { Random } from '@dlock/system'
import { seededRandom } from '@dlock/testing'

/** Chance of one seed and one purpose: a number more or less drawn elsewhere changes nothing here. */
export class Chance implements Random {
  readonly #random: Random

  constructor(seed: number, purpose: string) {
    this.#random = seededRandom(mix(seed, purpose))
  }

  next(): number {
    return this.#random.next()
  }

  /** Uniform in [from, to). */
  between(from: number, to: number): number {
    return from + this.next() * (to - from)
  }

  /** Uniform among the whole numbers from `from` to `to`, both included. */
  whole(from: number, to: number): number {
    return Math.floor(this.between(from, to + 1))
  }

  /** True so often. */
  happens(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.whole(0, items.length - 1)]
    if (item === undefined) throw new RangeError('there is nothing to pick from')
    return item
  }
}

/** FNV-1a over the purpose, begun with the seed: a 32-bit seed for each purpose. */
export function mix(seed: number, purpose: string): number {
  let hash = (0x811c_9dc5 ^ seed) >>> 0
  for (const character of purpose) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x0100_0193) >>> 0
  }
  return hash
}
