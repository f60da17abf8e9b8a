/**
 * For tests of code that uses locks, yours as well as ours: time that moves by hand, chance and
 * names that repeat, and a lock service that follows a script.
 *
 * @packageDocumentation
 */
export { agreeableService } from './agreeable-service.ts'
export { ManualClock, type ManualClockOptions } from './manual-clock.ts'
export {
  type CallName,
  type Direction,
  ScriptedService,
  type ServiceCall,
  type ServiceCalls,
} from './scripted-service.ts'
export { seededIds, seededRandom } from './seeded-chance.ts'
