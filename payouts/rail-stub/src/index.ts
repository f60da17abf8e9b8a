/**
 * The hazard: a third party's payment rail with no idempotency key, no compare-and-set and no
 * memory it would use. Every call is a fresh transfer. It misbehaves on demand (`RailFaults`), and
 * keeps a log of every request it received, which is the judge of every experiment here.
 *
 * @packageDocumentation
 */
export type { LoggedRequest, RailFaults, Transfer, TransferRequest } from './rail.ts'
export { railStubSettings, startRailStub } from './rail-stub.ts'
