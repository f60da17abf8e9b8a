import { expect, test } from 'vitest'
import { callers, openSession } from './callers.ts'
import { eventually, type Served, send, serve } from './serve.ts'

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

async function samples(served: Served): Promise<readonly Sample[]> {
  const { text } = await send(served, { path: '/metrics' })
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', inner = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const labels = [...inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
      return {
        name,
        labels: Object.fromEntries(labels.map(([, label, text]) => [label, text])),
        value: Number(value),
      }
    })
}

/** Every metric of the lock server, with the closed sets of its labels. */
const outcomes: Readonly<Record<string, readonly string[]>> = {
  lock_acquire_seconds: ['granted', 'contended', 'error'],
  lock_renew_seconds: ['renewed', 'lost', 'error'],
  lock_release_seconds: ['released', 'gone', 'error'],
}
const plain = [
  'lock_held_current',
  'lock_waiters_current',
  'lock_sessions_current',
  'lock_lease_expired_total',
  'lock_revoked_total',
  'lock_token_regression_total',
]
const buckets = [
  '0.0005',
  '0.001',
  '0.0025',
  '0.005',
  '0.01',
  '0.025',
  '0.05',
  '0.1',
  '0.25',
  '0.5',
  '1',
  '2.5',
  '5',
  '10',
  '30',
  '+Inf',
]

function expectedSeries(): string[] {
  const histogram = (name: string, labels: string): string[] => [
    ...buckets.map((le) => `${name}_bucket ${labels} le=${le}`),
    `${name}_sum ${labels}`,
    `${name}_count ${labels}`,
  ]
  const timed = Object.entries(outcomes).flatMap(([name, values]) =>
    values.flatMap((outcome) => histogram(name, `backend=memory outcome=${outcome}`)),
  )
  const handoff = histogram('lock_handoff_seconds', 'backend=memory')
  return [...timed, ...handoff, ...plain.map((name) => `${name} backend=memory`)].sort()
}

function series({ name, labels }: Sample): string {
  const { le, ...others } = labels
  const named = Object.entries(others)
    .map(([label, value]) => `${label}=${value}`)
    .sort()
  return [name, ...named, ...(le === undefined ? [] : [`le=${le}`])].join(' ')
}

test('every series is there from the start, at 0, and no other', async () => {
  const all = await samples(await serve())
  expect(all.map(series).sort()).toEqual(expectedSeries())
  expect(all.filter(({ value }) => value !== 0)).toEqual([])
})

test('NFR-09: whatever was called, no label leaves its closed set, and no series is new', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const sessionId = await openSession(caller, 'owner-in-a-label')
  const key = 'key-in-a-label'
  const { fencingToken } = await caller.call('acquire', { key, sessionId }, 'owner-in-a-label')
  await caller.call('renew', { key, sessionId, fencingToken }, 'owner-in-a-label')
  const other = await openSession(caller)
  await caller.refusal('acquire', { key, sessionId: other })
  await caller.refusal('acquire', { key, sessionId: 'unknown' })
  await caller.call('release', { key, fencingToken }, 'owner-in-a-label')
  await caller.refusal('release', { key, fencingToken: '999' })
  await caller.call('acquire', { key, sessionId: other })
  await caller.call('revoke', { key, operator: 'operator-in-a-label', reason: 'reason-in-a-label' })
  await send(served, { path: '/path-in-a-label' })

  const all = await samples(served)
  expect(all.map(series).sort()).toEqual(expectedSeries())
  const at = (name: string, outcome?: string): number | undefined =>
    all.find(({ name: n, labels }) => n === name && labels['outcome'] === outcome)?.value
  expect(at('lock_acquire_seconds_count', 'granted')).toBe(2)
  expect(at('lock_acquire_seconds_count', 'contended')).toBe(1)
  expect(at('lock_renew_seconds_count', 'renewed')).toBe(1)
  expect(at('lock_release_seconds_count', 'released')).toBe(1)
  expect(at('lock_release_seconds_count', 'gone')).toBe(1)
  expect(at('lock_revoked_total')).toBe(1)
  expect(at('lock_sessions_current')).toBe(2)
  expect(at('lock_held_current')).toBe(0)
  expect(at('lock_token_regression_total')).toBe(0)
})

test('gauges follow what happens', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId: holder })
  const wait = caller.call('acquire', { key: 'k', sessionId: waiter, waitMillis: 30_000 })
  await eventually(() => served.engine.gauges().waiters).toBe(1)
  const now = async (name: string): Promise<number | undefined> =>
    (await samples(served)).find((sample) => sample.name === name)?.value
  expect(await now('lock_held_current')).toBe(1)
  expect(await now('lock_waiters_current')).toBe(1)
  await caller.call('release', { key: 'k', fencingToken })
  await wait
  expect(await now('lock_waiters_current')).toBe(0)
  expect(await now('lock_handoff_seconds_count')).toBe(1)
})

test('two servers in one process count apart', async () => {
  const [one, two] = [await serve(), await serve()]
  await openSession(await callers.HTTP(one))
  const sessions = async (served: Served): Promise<number | undefined> =>
    (await samples(served)).find(({ name }) => name === 'lock_sessions_current')?.value
  expect([await sessions(one), await sessions(two)]).toEqual([1, 0])
})
