import type { Ids, Random } from '@dlock/system'

/**
 * Chance that repeats: the same seed gives the same numbers, on every machine. For schedules to
 * replay, never for secrets.
 *
 * @param seed a whole number from 0 to 2^32 − 1; print it when a test fails
 */
export function seededRandom(seed: number): Random {
  const word = seededWords(seed)
  // 53 bits, as many as a number holds: 26 from one word and 27 from the next.
  return { next: () => ((word() >>> 6) * 2 ** 27 + (word() >>> 5)) / 2 ** 53 }
}

/**
 * Names that repeat: the same seed gives the same ids, spelled like UUIDs, all different. Guessable, so
 * for tests only.
 *
 * @param seed a whole number from 0 to 2^32 − 1
 */
export function seededIds(seed: number): Ids {
  const word = seededWords(seed)
  const hex = (): string => word().toString(16).padStart(8, '0')
  return {
    uuid() {
      const digits = hex() + hex() + hex() + hex()
      return [
        digits.slice(0, 8),
        digits.slice(8, 12),
        digits.slice(12, 16),
        digits.slice(16, 20),
        digits.slice(20),
      ].join('-')
    },
  }
}

/** Words of 32 bits: a counter with an odd step, whose bits are then mixed twice over. */
function seededWords(seed: number): () => number {
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32) {
    throw new RangeError(`seed must be a whole number from 0 to ${2 ** 32 - 1}, got ${seed}`)
  }
  let counter = seed
  return () => {
    counter = (counter + 0x9e37_79b9) >>> 0
    let word = counter
    word = Math.imul(word ^ (word >>> 16), 0x21f0_aaad)
    word = Math.imul(word ^ (word >>> 15), 0x735a_2d97)
    return (word ^ (word >>> 15)) >>> 0
  }
}
