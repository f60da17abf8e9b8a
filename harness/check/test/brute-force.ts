import { FREE, type LockState, type Operation, step } from '@dlock/model'

/** So many unknown calls one after the other: one may free the key, one take it; more is no use. */
const MOST_UNKNOWN_IN_A_ROW = 3

/**
 * Is there an order? By trying every one: at each point every call that began before any of those
 * that are left ended, and every unknown call, again and again. Shares the step function with the
 * search, and none of its rules and none of its memory.
 */
export function hasOrder(operations: readonly Operation[]): boolean {
  const known = operations.filter((op) => op.type !== 'info')
  const unknown = operations.filter((op) => op.type === 'info')
  return canFinish(FREE, known, unknown, MOST_UNKNOWN_IN_A_ROW)
}

function canFinish(
  state: LockState,
  left: readonly Operation[],
  unknown: readonly Operation[],
  unknownLeft: number,
): boolean {
  if (left.length === 0) return true
  const latest = Math.min(...left.map(({ endedAt }) => endedAt))
  for (const op of left) {
    const after = op.invokedAt <= latest ? step(state, op, latest) : undefined
    const others = left.filter((other) => other !== op)
    if (after && canFinish(after, others, unknown, MOST_UNKNOWN_IN_A_ROW)) return true
  }
  if (unknownLeft === 0) return false
  return unknown.some((op) => {
    const after = op.invokedAt <= latest ? step(state, op, latest) : undefined
    return after !== undefined && canFinish(after, left, unknown, unknownLeft - 1)
  })
}
