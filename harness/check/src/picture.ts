import type { History, Operation } from '@dlock/model'
import type { Verdict } from './check.ts'
import { operationsOf } from './operations.ts'
import { describeCall, describeState, describeVerdict } from './wording.ts'

/** So many calls before the counterexample are drawn: what matters is close to it. */
const CALLS_DRAWN = 80

const STEP = 30
const ROW = 26
const LEFT = 90
const CHARACTER = 6.5

/**
 * A history as one HTML file that needs nothing else: a row for each process, a bar for each call
 * from its sending to its answer, the counterexample in red with a line where the search ends. Under
 * the pointer each bar says what it is, and which place it has in the order that was found. The
 * instants are drawn evenly, one after the other, and not to scale.
 *
 * @throws Malformed when there are no calls to draw
 */
export function picture(history: History, verdict: Verdict): string {
  const all = operationsOf(history.events)
  const stuck = verdict.kind === 'impossible' ? verdict.counterexample.stuck : undefined
  const drawn = around(all, stuck)
  const { key, backend, seed } = history.header
  const title = `History of ${key} on ${backend}, ${seed === null ? 'no seed' : `seed ${seed}`}`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escape(title)}</title>
<style>
  body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #1b1f24; background: #fff }
  pre { background: #f4f5f7; padding: 1em; overflow-x: auto }
  .frame { overflow-x: auto; border: 1px solid #d5d9de }
  text { font: 11px system-ui, sans-serif; fill: #1b1f24 }
  .ok { fill: #b7dfc3 } .fail { fill: #dfe3e8 } .info { fill: #f6e3b0 }
  .stuck { fill: #e5484d } .stuck + text { fill: #fff }
  .end { stroke: #e5484d; stroke-dasharray: 4 3 }
</style>
<h1>${escape(title)}</h1>
<p>${legend(all.length, drawn.length)}</p>
<pre>${escape(describeVerdict(verdict))}</pre>
<div class="frame">
${diagram(drawn, verdict, stuck)}
</div>
<pre>${escape(JSON.stringify(history.header, null, 2))}</pre>
</html>
`
}

function legend(all: number, drawn: number): string {
  const some = drawn < all ? ` The ${drawn} nearest of ${all} calls are drawn.` : ''
  return `Green: it happened. Grey: it did not. Yellow: nobody knows. Red: it cannot have.${some}`
}

/** The counterexample and what began before it ended; without one, the first calls. */
function around(all: readonly Operation[], stuck: Operation | undefined): Operation[] {
  if (stuck === undefined) return all.slice(0, CALLS_DRAWN)
  return all.filter((op) => op.invokedAt <= stuck.endedAt).slice(-CALLS_DRAWN)
}

function diagram(drawn: readonly Operation[], verdict: Verdict, stuck?: Operation): string {
  const order = 'order' in verdict ? verdict.order : orderOf(verdict)
  const instants = [...new Set(drawn.flatMap((op) => [op.invokedAt, op.endedAt]))]
    .filter(Number.isFinite)
    .sort((a, b) => a - b)
  const column = new Map(instants.map((instant, index) => [instant, index]))
  const x = (instant: number): number => LEFT + (column.get(instant) ?? instants.length) * STEP
  const rows = [...new Set(drawn.map((op) => op.process))].sort((a, b) => a - b)
  const width = LEFT + (instants.length + 2) * STEP
  const height = (rows.length + 1) * ROW
  const bars = drawn.map((op) => {
    const y = rows.indexOf(op.process) * ROW + 4
    const place = order.findIndex(({ id }) => id === op.id)
    return bar(op, {
      x: x(op.invokedAt),
      y,
      end: x(op.endedAt),
      place,
      isStuck: op.id === stuck?.id,
    })
  })
  const names = rows.map(
    (process, row) => `<text x="4" y="${row * ROW + 17}">process ${process}</text>`,
  )
  const end = stuck === undefined ? '' : endLine(x(stuck.endedAt), height, verdict)
  return `<svg width="${width}" height="${height}">\n${[...names, ...bars, end].join('\n')}\n</svg>`
}

function orderOf(verdict: Verdict): readonly Operation[] {
  return verdict.kind === 'impossible' ? verdict.counterexample.order : []
}

interface Bar {
  readonly x: number
  readonly y: number
  readonly end: number
  /** In the order that was found; −1 for none. */
  readonly place: number
  readonly isStuck: boolean
}

function bar(op: Operation, { x, y, end, place, isStuck }: Bar): string {
  const width = Math.max(end - x, STEP - 4)
  const where = place < 0 ? 'not in order' : `number ${place + 1} in order`
  const name = 'token' in op ? `${op.f} ${op.token}` : op.f
  const label = name.slice(0, Math.floor(width / CHARACTER))
  return (
    `<g><title>${escape(`${describeCall(op)}, ${where}`)}</title>` +
    `<rect class="${isStuck ? 'stuck' : op.type}" x="${x}" y="${y}" width="${width}" height="18" rx="3"/>` +
    `<text x="${x + 3}" y="${y + 13}">${label}</text></g>`
  )
}

function endLine(x: number, height: number, verdict: Verdict): string {
  const state =
    verdict.kind === 'impossible' ? describeState(verdict.counterexample.state) : 'unknown'
  return (
    `<line class="end" x1="${x}" x2="${x}" y1="0" y2="${height}"/>` +
    `<text x="${LEFT}" y="${height - 8}">here the key is ${escape(state)}</text>`
  )
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
