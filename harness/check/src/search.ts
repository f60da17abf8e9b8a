import { FREE, type LockState, type Operation, stateKey, step } from '@dlock/model'
import { Calls } from './calls.ts'

/** What the search found. */
export type Found =
  /** `order` is one in which the calls can have taken effect; unknown ones that need not are left out. */
  | { readonly kind: 'linearizable'; readonly order: readonly Operation[] }
  | { readonly kind: 'impossible'; readonly counterexample: Counterexample }
  /** Neither was found within the number of nodes allowed. Never to be taken for a yes. */
  | { readonly kind: 'undecided'; readonly nodes: number }

/** The furthest that any order gets. */
export interface Counterexample {
  /** The calls that could be put in order, in that order. */
  readonly order: readonly Operation[]
  /** What is known of the key after them. */
  readonly state: LockState
  /** Must come next, as it ends before anything else can begin, and cannot. */
  readonly stuck: Operation
  /** Everything that was going on then, `stuck` included. */
  readonly open: readonly Operation[]
}

/** The search's path: a call, and all that went before it. */
interface Path {
  readonly op: Operation
  readonly before: Path | undefined
}

/** A place in the search: some calls are in order, and the next one is to be chosen. */
interface Node {
  readonly state: LockState
  readonly path: Path | undefined
  /** What this node put in order, and takes back when it is left. */
  readonly placed: readonly number[]
  readonly choices: Choice[]
  /** The unknown calls were added to the choices: they come last. */
  widened: boolean
}

interface Choice {
  readonly index: number
  readonly state: LockState
}

/**
 * Looks for an order of the calls that the model allows and that respects real time: a call that
 * ended before another began comes first. The search is Wing and Gong's with Lowe's memory of the
 * places it has been, (calls in order, state), and on top of it three rules that this model earns.
 * None of them loses an order, if there is one (`brute-force` in the tests agrees):
 *
 * 1. **Tokens order the answers.** The `ok` answers that name a token take effect in the order of
 *    their tokens, as after a higher one nothing can be done with a lower. So only those of the
 *    lowest token not yet done are tried, and the search has a spine.
 * 2. **What changes nothing comes at once.** A call that is allowed now and leaves the state as it
 *    is can be put here without closing a way. (Not a `close`: it may have to end a later grant.)
 * 3. **What is unknown waits until it is needed.** It may take effect at any later time, and again,
 *    so it is tried only directly before something that it makes possible.
 */
export function search(operations: readonly Operation[], maxNodes = 1_000_000): Found {
  return new Search(operations, maxNodes).run()
}

class Search {
  readonly #calls: Calls
  readonly #maxNodes: number
  readonly #seen = new Set<string>()
  readonly #stack: Node[] = []
  #best: Counterexample | undefined
  #bestDone = -1

  constructor(operations: readonly Operation[], maxNodes: number) {
    this.#calls = new Calls(operations)
    this.#maxNodes = maxNodes
  }

  run(): Found {
    this.#enter([], FREE, undefined)
    for (let node = this.#stack.at(-1); node !== undefined; node = this.#stack.at(-1)) {
      if (this.#calls.allDone) return { kind: 'linearizable', order: inOrder(node.path) }
      if (this.#seen.size > this.#maxNodes) return { kind: 'undecided', nodes: this.#seen.size }
      const choice = this.#nextChoice(node)
      if (choice === undefined) this.#leave(node)
      else this.#enter([choice.index], choice.state, node.path)
    }
    if (this.#best === undefined) throw new Error('a search that fails has been somewhere')
    return { kind: 'impossible', counterexample: this.#best }
  }

  #enter(chosen: readonly number[], state: LockState, before: Path | undefined): void {
    const calls = this.#calls
    const placed = [...chosen]
    for (const index of chosen) calls.place(index)
    for (let more = this.#idle(state); more.length > 0; more = this.#idle(state)) {
      for (const index of more) calls.place(index)
      placed.push(...more)
    }
    const path = placed.reduce(
      (longer: Path | undefined, index): Path => ({ op: calls.at(index), before: longer }),
      before,
    )
    const place = `${calls.doneKey}|${this.#likeness(state)}`
    const isNew = !this.#seen.has(place)
    this.#seen.add(place)
    const choices = isNew ? this.#choices(state) : []
    this.#stack.push({ state, path, placed, choices, widened: !isNew })
    if (isNew && !calls.allDone) this.#remember(state, path)
  }

  #leave(node: Node): void {
    for (const index of node.placed) this.#calls.takeBack(index)
    this.#stack.pop()
  }

  #nextChoice(node: Node): Choice | undefined {
    const choice = node.choices.shift()
    if (choice !== undefined || node.widened) return choice
    node.widened = true
    node.choices.push(...this.#unknownChoices(node.state))
    return node.choices.shift()
  }

  /** Rule 2. */
  #idle(state: LockState): number[] {
    const { window, horizon } = this.#calls.frontier()
    return window.filter((index) => {
      const op = this.#calls.at(index)
      return op.f !== 'close' && step(state, op, horizon) === state
    })
  }

  /** Rule 1. What must come first is tried first. */
  #choices(state: LockState): Choice[] {
    const { window, horizon } = this.#calls.frontier()
    const lowest = this.#calls.lowestToken
    return window
      .filter((index) => {
        const token = this.#calls.tokenOf(index)
        return token === undefined || token === lowest
      })
      .sort((a, b) => this.#calls.at(a).endedAt - this.#calls.at(b).endedAt)
      .flatMap((index) => {
        const after = step(state, this.#calls.at(index), horizon)
        return after === undefined ? [] : [{ index, state: after }]
      })
  }

  /** Rule 3. Of the unknown calls, only an acquire can be impossible now and possible after another. */
  #unknownChoices(state: LockState): Choice[] {
    const { window, horizon, unknown } = this.#calls.frontier()
    const after = (from: LockState, index: number): LockState | undefined =>
      step(from, this.#calls.at(index), horizon)
    const acquires = unknown.filter((index) => this.#calls.at(index).f === 'acquire')
    const blocked = [...window, ...acquires].filter((index) => after(state, index) === undefined)
    const different = new Map<string, Choice>()
    for (const index of unknown) {
      const next = after(state, index)
      if (next === undefined || next === state || different.has(this.#likeness(next))) continue
      if (!blocked.some((other) => after(next, other) !== undefined)) continue
      different.set(this.#likeness(next), { index, state: next })
    }
    return [...different.values()]
  }

  /** Equal for states from which the same can follow: who holds may not matter any more. */
  #likeness(state: LockState): string {
    const { holder } = state
    if (holder === undefined || this.#calls.isAwaited(holder.session)) return stateKey(state)
    return stateKey({ ...state, holder: { ...holder, session: '' } })
  }

  #remember(state: LockState, path: Path | undefined): void {
    if (this.#calls.knownDone <= this.#bestDone) return
    const { window } = this.#calls.frontier()
    const open = window.map((index) => this.#calls.at(index))
    const [stuck] = open.toSorted((a, b) => a.endedAt - b.endedAt)
    if (stuck === undefined) return
    this.#bestDone = this.#calls.knownDone
    this.#best = {
      state,
      stuck,
      open,
      get order() {
        return inOrder(path)
      },
    }
  }
}

function inOrder(path: Path | undefined): Operation[] {
  const backwards: Operation[] = []
  for (let at = path; at !== undefined; at = at.before) backwards.push(at.op)
  return backwards.reverse()
}
