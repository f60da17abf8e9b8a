/**
 * Real processes, stopped and killed: `npm run experiment` (a holder that is paused past its lease,
 * with the guards on and off) and `npm run demo` (200 payouts through a rail that misbehaves, while
 * executors are killed and paused). What counts is the rail's own log, never what a process says of
 * itself.
 *
 * @packageDocumentation
 */
export { runMode } from './experiment.ts'
export { MODES, type Mode } from './modes.ts'
export { judge, type Round, type Verdict } from './verdict.ts'
