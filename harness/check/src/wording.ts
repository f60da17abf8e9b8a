import type { LockState, Operation } from '@dlock/model'
import type { Verdict } from './check.ts'

/** One call in words: `#12 c3 renew 7 → ok until 91.2 ms`. */
export function describeCall(op: Operation): string {
  const asked = op.f === 'renew' || op.f === 'release' ? `${op.f} ${op.token}` : op.f
  return `#${op.id} ${op.session} ${asked} → ${answerOf(op)}`
}

/** What is known of the key, in words. */
export function describeState({ holder, floor }: LockState): string {
  if (holder === undefined) return `free, highest token ${floor}`
  const token = holder.unseen ? `an unseen token from ${holder.token}` : `token ${holder.token}`
  const since = holder.over ? 'and over' : `at least until ${ms(holder.until)}`
  return `held by ${holder.session} with ${token}, ${since}`
}

/** The verdict for people: one line when all is well, else what was found, and where. */
export function describeVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'linearizable':
      return `linearizable: ${verdict.order.length} calls in order`
    case 'undecided':
      return `undecided after ${verdict.nodes} places: neither an order nor the lack of one was found`
    case 'malformed':
      return ['malformed:', ...verdict.problems].join('\n  ')
    case 'impossible': {
      const { order, state, stuck, open } = verdict.counterexample
      return [
        `not linearizable: after ${order.length} calls in order the key is ${describeState(state)},`,
        `and by ${ms(stuck.endedAt)} this must have happened, but cannot have:`,
        `  ${describeCall(stuck)}`,
        'Before it:',
        ...order.slice(-6).map((op) => `  ${describeCall(op)}`),
        'Beside it:',
        ...open.filter((op) => op !== stuck).map((op) => `  ${describeCall(op)}`),
      ].join('\n')
    }
  }
}

function answerOf(op: Operation): string {
  if (op.type === 'info') return 'unknown'
  if (op.type === 'fail') return op.refused ? REFUSED[op.f] : 'not asked'
  switch (op.f) {
    case 'acquire':
      return `token ${op.token} until ${ms(op.until)}`
    case 'renew':
      return `ok until ${ms(op.until)}`
    case 'revoke':
      return `token ${op.token} taken away, floor ${op.floor}`
    case 'release':
    case 'close':
      return 'ok'
  }
}

const REFUSED: Readonly<Record<Operation['f'], string>> = {
  acquire: 'held by another',
  renew: 'lost',
  release: 'gone already',
  revoke: 'not held',
  close: 'refused',
}

function ms(nanos: number): string {
  return Number.isFinite(nanos) ? `${(nanos / 1e6).toFixed(1)} ms` : 'the end'
}
