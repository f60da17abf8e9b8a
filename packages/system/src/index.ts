/**
 * Time, chance and ids, as arguments: the three seams, and this process's own side of each. The
 * one package whose source may touch an ambient clock, timer or random source; lint forbids them
 * everywhere else, so that every schedule can be replayed by handing in other ones.
 *
 * @packageDocumentation
 */
export type { Clock, Ids, Random, Timer } from './clock.ts'
export { formatDuration, parseDuration } from './duration.ts'
export { systemIds, systemRandom } from './system-chance.ts'
export { systemClock } from './system-clock.ts'
