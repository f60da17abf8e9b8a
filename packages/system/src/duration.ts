const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]

/**
 * Milliseconds, as people write them in configuration and on the command line: a number with a
 * unit, `250ms`, `15s`, `1.5s`, `5m`, `1h`, `30d`.
 *
 * @returns a whole number; `undefined` when it is no duration, or no whole number of milliseconds
 */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  const unitMs = UNITS.find(([unit]) => unit === match?.[2])?.[1]
  if (match === null || unitMs === undefined) return undefined
  const ms = Number(match[1]) * unitMs
  return Number.isSafeInteger(ms) ? ms : undefined
}

/** As `parseDuration` reads it, with the largest unit that leaves a whole number. */
export function formatDuration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, size]) => ms > 0 && ms % size === 0) ?? ['ms', 1]
  return `${ms / unitMs}${unit}`
}
