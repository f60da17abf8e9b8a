import type { Action, Called, Event, Operation } from '@dlock/model'

/** What is wrong with a history before anybody asks what it means. */
export class Malformed extends Error {
  override readonly name = 'Malformed'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/**
 * Pairs the lines of a history into calls, and checks on the way whatever the search takes for
 * granted. A verdict on a history that breaks one of these would be worth nothing:
 *
 * - times never go back, and an id names one call;
 * - a process has one call open at a time, and is not heard of after an `info`: whoever goes on
 *   after a time-out is a new process, since the old call may still take effect beside the next;
 * - an end belongs to its beginning: same process, session, function and, where it has one, token;
 * - an answer has what the model needs: a grant its token and deadline, a revocation its floor.
 *
 * A call that is still open at the end is an `info`.
 *
 * @throws Malformed
 */
export function operationsOf(events: readonly Event[]): Operation[] {
  const reader = new Reader()
  for (const event of events) reader.read(event)
  return reader.end()
}

class Reader {
  readonly #problems: string[] = []
  readonly #operations: Operation[] = []
  readonly #ids = new Set<number>()
  readonly #open = new Map<number, Event>()
  readonly #gone = new Set<number>()
  #time = 0

  read(event: Event): void {
    if (event.time < this.#time) this.#complain(event, `time goes back from ${this.#time}`)
    this.#time = event.time
    if (event.type === 'invoke') this.#begin(event)
    else this.#finish(event)
  }

  end(): Operation[] {
    for (const begun of this.#open.values()) this.#add(begun, { ...begun, type: 'info' })
    if (this.#problems.length > 0) throw new Malformed(this.#problems)
    return this.#operations.sort((a, b) => a.invokedAt - b.invokedAt)
  }

  #begin(event: Event): void {
    const { id, process } = event
    if (this.#ids.has(id)) this.#complain(event, 'its id was used before')
    if (this.#open.has(process)) this.#complain(event, `process ${process} has a call open already`)
    if (this.#gone.has(process))
      this.#complain(event, `process ${process} ended with an unknown call`)
    this.#ids.add(id)
    this.#open.set(process, event)
  }

  #finish(event: Event): void {
    const begun = this.#open.get(event.process)
    if (begun?.id !== event.id) return this.#complain(event, 'it ends a call that is not open')
    this.#open.delete(event.process)
    if (event.type === 'info') this.#gone.add(event.process)
    if (event.session !== begun.session) this.#complain(event, 'it changes its session')
    if (event.f !== begun.f) this.#complain(event, `it ends as ${event.f} and began as ${begun.f}`)
    this.#add(begun, event)
  }

  #add(begun: Event, ended: Event): void {
    const action = actionOf(begun, ended)
    if (typeof action === 'string') return this.#complain(ended, action)
    const called: Called = {
      id: begun.id,
      process: begun.process,
      session: begun.session,
      invokedAt: begun.time,
      endedAt: ended.type === 'info' ? Number.POSITIVE_INFINITY : ended.time,
    }
    this.#operations.push({ ...called, ...action })
  }

  #complain({ id, type, f }: Event, what: string): void {
    this.#problems.push(`${type} of ${f} ${id}: ${what}`)
  }
}

/** What was asked and what came of it, or what is missing. */
function actionOf(begun: Event, ended: Event): Action | string {
  const { f } = begun
  const { type } = ended
  if (type === 'invoke') return 'it does not end'
  const names = f === 'renew' || f === 'release'
  if (names && begun.value === null) return 'it names no token'
  if (names && type !== 'info' && ended.value !== begun.value) return 'it changes its token'
  const asked = BigInt(begun.value ?? 0)
  if (type !== 'ok') {
    const came = type === 'fail' ? { type, refused: ended.refused === true } : { type }
    return names ? { f, token: asked, ...came } : { f, ...came }
  }
  switch (f) {
    case 'release':
      return { f, type, token: asked }
    case 'close':
      return { f, type }
    case 'renew':
      if (ended.until === undefined) return 'it has no deadline'
      return { f, type, token: asked, until: ended.until }
    case 'acquire':
      if (ended.value === null) return 'it has no token'
      if (ended.until === undefined) return 'it has no deadline'
      return { f, type, token: BigInt(ended.value), until: ended.until }
    case 'revoke':
      if (ended.value === null || ended.floor === undefined) return 'it has no token or no floor'
      return { f, type, token: BigInt(ended.value), floor: BigInt(ended.floor) }
  }
}
