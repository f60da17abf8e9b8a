/**
 * What happened: could a correct lock have produced this history? An independent search for a
 * linearization, on nothing but the model and what clients saw.
 *
 * 1. **The history is checked before its meaning** (`operations.ts`): a recorder's mistake must
 *    neither look like a bug of the service nor hide one. What is not well-formed gets no verdict.
 * 2. **The search** (`search.ts`) puts the calls of one key in an order in which the model allows
 *    each of them, and which respects real time: keys are independent (linearizability is local),
 *    so each has a history, and a file, of its own.
 * 3. **The counterexample**: the furthest that any order gets, the call that then must have
 *    happened and cannot have, in words (`wording.ts`) and as a picture (`picture.ts`).
 *
 * `undecided` is an answer of its own: a search that gave up has proven nothing.
 *
 * **Not found by it**: what no client saw. A service that grants nothing has only linearizable
 * histories. That writes of a stale holder are refused is the guards' to show (`harness/traffic`
 * counts it at a cell), and that it survives a fault is shown only by a history under that fault.
 *
 * @packageDocumentation
 */
export { check, checkText, type Verdict } from './check.ts'
export { Malformed, operationsOf } from './operations.ts'
export { picture } from './picture.ts'
export { type Counterexample, type Found, search } from './search.ts'
export { describeCall, describeState, describeVerdict } from './wording.ts'
