/**
 * Which load, and what clients saw of it.
 *
 * - **Profiles** (`profiles.ts`): uncontended, light, one hot key, long holds, churn of sessions.
 * - **The violation detector** (`detector.ts`): every critical section leaves owner and token in a
 *   cell behind a guard (`cell.ts`) and finds them there at its end. While it does not read 0, no
 *   figure of the run is printed (`report.ts`).
 * - **The recorder** (`recorder.ts`): every call with its beginning and its end, as histories for
 *   `harness/check`; around the SDK (`recorded-session.ts`) or a bound service
 *   (`recorded-service.ts`).
 *
 * **Not promised**: that a run without violations had any contention, or that the figures of one
 * machine say anything of another. Ratios are `harness/bench`'s.
 *
 * @packageDocumentation
 */
export { type Cell, type Entry, MemoryCell, PostgresCell, type Written } from './cell.ts'
export { Detector } from './detector.ts'
export { Latencies, type Timed } from './latencies.ts'
export { type Profile, type ProfileName, profiles } from './profiles.ts'
export { type RecordedCalls, recordedService } from './recorded-service.ts'
export { RecordedSession } from './recorded-session.ts'
export { type Call, type End, RecordedClient, Recorder, UNKNOWN } from './recorder.ts'
export { report } from './report.ts'
export { type RunOptions, type RunResult, run } from './run.ts'
