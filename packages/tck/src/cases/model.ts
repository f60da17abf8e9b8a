import assert from 'node:assert/strict'
import { type LockHandle, SessionDeadError } from '@dlock/lock-api'
import fc from 'fast-check'
import { FAR_FUTURE, LONG_MS, letEnd, openSession, SHORT_MS } from '../steps.ts'
import type { StoreCase, StoreNamespace } from '../store-case.ts'

const KEYS = ['job', 'job/1', 'job2'] as const
const SESSIONS = 3
const RUNS = 20
const STEPS = 30

/** One call, with its arguments: places in the lists of keys, sessions and handles seen so far. */
type Step =
  | { readonly do: 'insert' | 'insert-and-let-expire'; readonly key: number; readonly by: number }
  | { readonly do: 'extend' | 'release' | 'transfer'; readonly handle: number; readonly by: number }
  | { readonly do: 'read' | 'revoke'; readonly key: number }
  | { readonly do: 'reopen' | 'close' | 'kill' | 'heartbeat' | 'locks-of'; readonly by: number }
  | { readonly do: 'reap' }

const someKey = fc.nat(KEYS.length - 1)
const someSession = fc.nat(SESSIONS - 1)
const someHandle = fc.nat(STEPS)

const someStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: step('insert', { key: someKey, by: someSession }) },
  { weight: 1, arbitrary: step('insert-and-let-expire', { key: someKey, by: someSession }) },
  { weight: 3, arbitrary: step('extend', { handle: someHandle, by: someSession }) },
  { weight: 4, arbitrary: step('release', { handle: someHandle, by: someSession }) },
  { weight: 2, arbitrary: step('transfer', { handle: someHandle, by: someSession }) },
  { weight: 1, arbitrary: step('revoke', { key: someKey }) },
  { weight: 2, arbitrary: step('read', { key: someKey }) },
  { weight: 1, arbitrary: step('reopen', { by: someSession }) },
  { weight: 1, arbitrary: step('close', { by: someSession }) },
  { weight: 1, arbitrary: step('kill', { by: someSession }) },
  { weight: 1, arbitrary: step('heartbeat', { by: someSession }) },
  { weight: 1, arbitrary: step('locks-of', { by: someSession }) },
  { weight: 1, arbitrary: step('reap', {}) },
)

/** Random histories of calls, each answer compared with a model that is too simple to be wrong. */
export const modelCases: readonly StoreCase[] = [
  {
    name: 'any history of calls gets the answers of a simple model',
    async run(given) {
      let runs = 0
      await fc.assert(
        fc.asyncProperty(fc.array(someStep, { maxLength: STEPS, size: 'max' }), async (steps) => {
          runs += 1
          const history = await History.begin(given, `run-${runs}/`)
          for (const each of steps) await history.take(each)
        }),
        { numRuns: RUNS },
      )
    },
  },
]

function step<Verb extends Step['do'], Rest>(
  verb: Verb,
  rest: { [Name in keyof Rest]: fc.Arbitrary<Rest[Name]> },
): fc.Arbitrary<{ do: Verb } & Rest> {
  return fc.record({ do: fc.constant(verb), ...rest }) as fc.Arbitrary<{ do: Verb } & Rest>
}

/** The store and the model, side by side. */
class History {
  readonly #given: StoreNamespace
  readonly #prefix: string
  readonly #sessions: { sessionId: string; alive: boolean }[] = []
  readonly #handles: LockHandle[] = []
  /** The model: who holds what, and the highest token or floor of each key. */
  readonly #held = new Map<string, LockHandle>()
  readonly #highest = new Map<string, bigint>()

  private constructor(given: StoreNamespace, prefix: string) {
    this.#given = given
    this.#prefix = prefix
  }

  static async begin(given: StoreNamespace, prefix: string): Promise<History> {
    const history = new History(given, prefix)
    for (let index = 0; index < SESSIONS; index++) await history.#reopen(index)
    return history
  }

  async take(next: Step): Promise<void> {
    switch (next.do) {
      case 'insert':
        return void (await this.#insert(this.#key(next.key), next.by, LONG_MS))
      case 'insert-and-let-expire':
        return this.#insertAndLetExpire(this.#key(next.key), next.by)
      case 'extend':
        return this.#extend(next.handle)
      case 'release':
        return this.#release(next.handle)
      case 'transfer':
        return this.#transfer(next.handle, next.by)
      case 'read':
        return this.#read(this.#key(next.key))
      case 'revoke':
        return this.#revoke(this.#key(next.key))
      case 'reopen':
        return this.#reopen(next.by)
      case 'close':
        return this.#close(next.by)
      case 'kill':
        return this.#kill(next.by)
      case 'heartbeat':
        return this.#heartbeat(next.by)
      case 'locks-of':
        return this.#locksOf(next.by)
      case 'reap':
        return void (await this.#given.store.reapExpired(FAR_FUTURE))
    }
  }

  async #insert(key: string, by: number, ttlMs: number): Promise<LockHandle | undefined> {
    const { sessionId, alive } = this.#session(by)
    const asked = this.#given.store.tryInsert(key, 'worker', sessionId, ttlMs)
    if (!alive) {
      await assert.rejects(asked, SessionDeadError)
      return undefined
    }
    const answer = await asked
    const held = this.#held.get(key)
    if (held === undefined) {
      assert.ok(answer, 'a free key must be granted')
      this.#noteGrant(answer)
      return answer
    }
    const expected = held.sessionId === sessionId ? held.fencingToken : undefined
    assert.equal(answer?.fencingToken, expected)
    return undefined
  }

  /** Only a grant that this step made is a short one; any other is left alone. */
  async #insertAndLetExpire(key: string, by: number): Promise<void> {
    const made = await this.#insert(key, by, SHORT_MS / 5)
    if (made === undefined) return
    await letEnd(this.#given, SHORT_MS / 5)
    this.#held.delete(key)
  }

  async #extend(index: number): Promise<void> {
    const handle = this.#handle(index)
    if (handle === undefined) return
    const answer = await this.#given.store.extend(handle.key, handle.fencingToken, LONG_MS)
    assert.equal(answer?.fencingToken, this.#isHeld(handle) ? handle.fencingToken : undefined)
  }

  async #release(index: number): Promise<void> {
    const handle = this.#handle(index)
    if (handle === undefined) return
    const answer = await this.#given.store.deleteIfOwner(handle.key, handle.fencingToken)
    // Of a grant that expired, or whose session was killed, the record may or may not be there.
    if (this.#isHeld(handle)) assert.equal(answer, true)
    if (this.#held.has(handle.key) && !this.#isHeld(handle)) assert.equal(answer, false)
    if (this.#isHeld(handle)) this.#held.delete(handle.key)
  }

  async #transfer(index: number, by: number): Promise<void> {
    const capability = this.#given.store.capabilities?.().transfer
    const handle = this.#handle(index)
    if (capability === undefined || handle === undefined || !this.#isHeld(handle)) return
    const { sessionId, alive } = this.#session(by)
    const next = { ownerId: 'worker', sessionId, ttlMs: LONG_MS }
    const answer = await capability.transfer(handle.key, handle.fencingToken, next)
    assert.equal(answer.released, true)
    assert.equal(answer.granted !== undefined, alive)
    this.#held.delete(handle.key)
    if (answer.granted !== undefined) this.#noteGrant(answer.granted)
  }

  async #read(key: string): Promise<void> {
    const info = await this.#given.store.read(key)
    assert.equal(info?.fencingToken, this.#held.get(key)?.fencingToken)
  }

  async #revoke(key: string): Promise<void> {
    const outcome = await this.#given.store.revoke(key, 'operator', 'for the test')
    const held = this.#held.get(key)
    assert.equal(outcome.revoked, held !== undefined)
    assert.equal(outcome.previousToken, held?.fencingToken)
    this.#held.delete(key)
    if (outcome.newTokenFloor !== undefined) this.#highest.set(key, outcome.newTokenFloor)
  }

  async #reopen(by: number): Promise<void> {
    const former = this.#sessions[by]
    if (former !== undefined) await this.#close(by)
    this.#sessions[by] = { sessionId: await openSession(this.#given.store), alive: true }
  }

  async #close(by: number): Promise<void> {
    const { sessionId } = this.#session(by)
    assert.equal(await this.#given.store.closeSession(sessionId), this.#keysOf(by).size)
    this.#noteDeath(by)
  }

  async #kill(by: number): Promise<void> {
    await this.#given.killSession(this.#session(by).sessionId)
    this.#noteDeath(by)
  }

  async #heartbeat(by: number): Promise<void> {
    const { sessionId, alive } = this.#session(by)
    assert.equal(await this.#given.store.heartbeat(sessionId, LONG_MS), alive)
  }

  async #locksOf(by: number): Promise<void> {
    assert.deepEqual(await this.#given.store.locksOf(this.#session(by).sessionId), this.#keysOf(by))
  }

  #noteGrant(grant: LockHandle): void {
    const highest = this.#highest.get(grant.key) ?? 0n
    assert.ok(grant.fencingToken > highest, `${grant.fencingToken} is not above ${highest}`)
    this.#highest.set(grant.key, grant.fencingToken)
    this.#held.set(grant.key, grant)
    this.#handles.push(grant)
  }

  #noteDeath(by: number): void {
    const session = this.#session(by)
    for (const key of this.#keysOf(by)) this.#held.delete(key)
    session.alive = false
  }

  #key(index: number): string {
    return `${this.#prefix}${KEYS[index]}`
  }

  #session(by: number): { sessionId: string; alive: boolean } {
    const session = this.#sessions[by]
    assert.ok(session)
    return session
  }

  /** Any handle seen so far, the newest ones as likely as the oldest. */
  #handle(index: number): LockHandle | undefined {
    return this.#handles[index % this.#handles.length]
  }

  #isHeld(handle: LockHandle): boolean {
    return this.#held.get(handle.key)?.fencingToken === handle.fencingToken
  }

  #keysOf(by: number): Set<string> {
    const { sessionId } = this.#session(by)
    const held = [...this.#held.values()].filter((grant) => grant.sessionId === sessionId)
    return new Set(held.map((grant) => grant.key))
  }
}
