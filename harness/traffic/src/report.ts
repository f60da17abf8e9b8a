import type { Timed } from './latencies.ts'
import type { RunResult } from './run.ts'

const TIMED: readonly Timed[] = ['acquire', 'renew', 'release']
const SHARES: readonly number[] = [0.5, 0.9, 0.99, 0.999, 1]

/**
 * A run in words. No figure of a run with a violation is printed: what is fast because it is wrong
 * is not fast.
 */
export function report({ detector, latencies, errors, seconds }: RunResult): string {
  if (detector.violations > 0) {
    return [
      `${detector.violations} VIOLATIONS of mutual exclusion; no figure of this run counts.`,
      ...detector.described.map((what) => `  ${what}`),
    ].join('\n')
  }
  const rows = TIMED.filter((what) => latencies.count(what) > 0).map((what) => {
    const figures = SHARES.map((share) => latencies.ms(what, share).toFixed(2).padStart(9))
    const count = latencies.count(what)
    return `  ${what.padEnd(8)}${`${count}`.padStart(8)}${(count / seconds).toFixed(0).padStart(8)}${figures.join('')}`
  })
  return [
    `0 violations, ${detector.fencedOut} fenced out in time, ${errors} calls without an answer.`,
    `  ms         calls     /s       p50      p90      p99    p99.9      max`,
    ...rows,
  ].join('\n')
}
