import type { LockService, SessionRegistry, SessionScope } from '@dlock/lock-api'

/** Everything that a service can be asked. */
export type ServiceCalls = SessionRegistry & LockService

/** `'acquire'`, `'heartbeat'`, … */
export type CallName = keyof ServiceCalls

/** A call that arrived at a scripted service. */
export type ServiceCall<Name extends CallName = CallName> = {
  readonly [Each in Name]: {
    readonly name: Each
    readonly args: Parameters<ServiceCalls[Each]>
    /** Whose call it is; `undefined` for the calls of the session registry. */
    readonly sessionId: string | undefined
  }
}[Name]

/**
 * What becomes of a call. `proceed` carries it out as if there were no script; a direction that
 * does not call it lets the caller believe what did not happen, and one that calls it and then
 * throws has lost the answer.
 */
export type Direction<Name extends CallName> = (
  proceed: () => ReturnType<ServiceCalls[Name]>,
  call: ServiceCall<Name>,
) => ReturnType<ServiceCalls[Name]>

/**
 * A service whose calls follow a script: any of them may be refused, fail, answer late, or never.
 * What the script does not mention goes to the service behind it.
 *
 * ```ts
 * service.next('acquire', async () => undefined)                       // held by another
 * service.next('renew', async () => { throw new ContentionError('?') }) // a blip
 * service.next('release', () => new Promise(() => {}))                 // no answer, ever
 * service.next('acquire', async (proceed) => {                         // granted, answer lost
 *   await proceed()
 *   throw new ContentionError('connection reset')
 * })
 * ```
 */
export class ScriptedService implements SessionRegistry, SessionScope {
  /** Every call so far, in the order of arrival. */
  readonly calls: ServiceCall[] = []
  readonly #behind: SessionRegistry & SessionScope
  readonly #next = new Map<CallName, Direction<CallName>[]>()
  readonly #always = new Map<CallName, Direction<CallName>>()
  readonly #awaited = new Set<() => void>()

  constructor(behind: SessionRegistry & SessionScope) {
    this.#behind = behind
  }

  /** The next call of that name follows the first direction, the one after it the second, … */
  next<Name extends CallName>(name: Name, ...directions: Direction<Name>[]): void {
    this.#next.set(name, [
      ...(this.#next.get(name) ?? []),
      ...(directions as unknown as Direction<CallName>[]),
    ])
  }

  /** What every call of that name follows that `next` does not mention; `undefined`: no script. */
  always<Name extends CallName>(name: Name, direction: Direction<Name> | undefined): void {
    if (direction === undefined) this.#always.delete(name)
    else this.#always.set(name, direction as unknown as Direction<CallName>)
  }

  /** Resolves when `name` has been called `times` times: a signal to wait on. */
  async called(name: CallName, times = 1): Promise<void> {
    while (this.calls.filter((call) => call.name === name).length < times) {
      await new Promise<void>((arrived) => this.#awaited.add(arrived))
    }
  }

  openSession(...args: Parameters<ServiceCalls['openSession']>): Promise<string> {
    return this.#call('openSession', args, undefined, () => this.#behind.openSession(...args))
  }

  heartbeat(...args: Parameters<ServiceCalls['heartbeat']>): Promise<boolean> {
    return this.#call('heartbeat', args, undefined, () => this.#behind.heartbeat(...args))
  }

  closeSession(...args: Parameters<ServiceCalls['closeSession']>): Promise<number> {
    return this.#call('closeSession', args, undefined, () => this.#behind.closeSession(...args))
  }

  locksOf(...args: Parameters<ServiceCalls['locksOf']>): Promise<ReadonlySet<string>> {
    return this.#call('locksOf', args, undefined, () => this.#behind.locksOf(...args))
  }

  forSession(sessionId: string): LockService {
    const behind = this.#behind.forSession(sessionId)
    return {
      acquire: (...args) => this.#call('acquire', args, sessionId, () => behind.acquire(...args)),
      tryAcquire: (...args) =>
        this.#call('tryAcquire', args, sessionId, () => behind.tryAcquire(...args)),
      renew: (...args) => this.#call('renew', args, sessionId, () => behind.renew(...args)),
      release: (...args) => this.#call('release', args, sessionId, () => behind.release(...args)),
      inspect: (...args) => this.#call('inspect', args, sessionId, () => behind.inspect(...args)),
      forceRevoke: (...args) =>
        this.#call('forceRevoke', args, sessionId, () => behind.forceRevoke(...args)),
    }
  }

  #call<Name extends CallName>(
    name: Name,
    args: Parameters<ServiceCalls[Name]>,
    sessionId: string | undefined,
    proceed: () => ReturnType<ServiceCalls[Name]>,
  ): ReturnType<ServiceCalls[Name]> {
    const call = { name, args, sessionId } as unknown as ServiceCall<Name> & ServiceCall
    this.calls.push(call)
    for (const arrived of this.#awaited) arrived()
    this.#awaited.clear()
    const direction = this.#next.get(name)?.shift() ?? this.#always.get(name)
    return direction === undefined
      ? proceed()
      : (direction as unknown as Direction<Name>)(proceed, call)
  }
}
