import {
  type Answered,
  call,
  createLog,
  idempotencyKeyOf,
  type RunningService,
  railOperations as rail,
} from '@dlock/messages'
import { startRailStub } from '@dlock/rail-stub'
import { createTestDatabase, type TestDatabase } from '@dlock/services'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startRailProxy } from '../src/index.ts'

let database: TestDatabase
let stub: RunningService
let proxy: RunningService
const lines: string[] = []
beforeAll(async () => {
  database = await createTestDatabase()
  const silent = createLog('rail-stub', { stream: { write: () => undefined } })
  stub = await startRailStub(
    { RAIL_STUB_LISTEN_PORT: '0', RAIL_STUB_LATENCY: '0ms' },
    { log: silent },
  )
  const log = createLog('rail-proxy', { stream: { write: (line) => void lines.push(line) } })
  const env = { RAIL_PROXY_LISTEN_PORT: '0', RAIL_URL: stub.url, RAILDB_URL: database.url }
  proxy = await startRailProxy({ ...env, RAIL_READ_TIMEOUT: '300ms' }, { log })
})
afterAll(async () => {
  await proxy.close()
  await stub.close()
  await database[Symbol.asyncDispose]()
})

const limits = { timeoutMs: 10_000 }
const input = (payoutId: string, token: bigint, accountId = `acc-of-${payoutId}`) => ({
  payoutId,
  accountId,
  ownerId: 'worker',
  fencingToken: token.toString(),
  idempotencyKey: idempotencyKeyOf(payoutId),
  amountMinor: 100,
  currency: 'EUR',
  beneficiaryRef: 'ben-1',
})
const submit = (payoutId: string, token: bigint, accountId?: string) =>
  call(proxy.url, rail.submit, input(payoutId, token, accountId), limits)
const codeOf = (answered: Answered<unknown>): string =>
  answered.kind === 'refused' ? answered.envelope.code : answered.kind

async function faults(change: object): Promise<void> {
  await fetch(`${stub.url}/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(change),
  })
}

async function requests(payoutId: string): Promise<number> {
  const answer = await (await fetch(`${stub.url}/requests`)).json()
  const { requests: log } = answer as { requests: { clientRef: string }[] }
  return log.filter(({ clientRef }) => clientRef === payoutId).length
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${proxy.url}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.split(' ').at(-1))
}

test('acknowledged, declined, unclear: 200, RAIL_REJECTED, RAIL_AMBIGUOUS; each on record', async () => {
  expect(codeOf(await submit('ok', 7n))).toBe('ok')
  await faults({ declineRate: 1 })
  expect(codeOf(await submit('declined', 7n))).toBe('RAIL_REJECTED')
  await faults({ declineRate: 0, lostReplyRate: 1 })
  expect(codeOf(await submit('lost', 7n))).toBe('RAIL_AMBIGUOUS')
  await faults({ lostReplyRate: 0, failureRate: 1 })
  expect(codeOf(await submit('failed', 7n))).toBe('RAIL_AMBIGUOUS')
  await faults({ failureRate: 0, latencyMs: 600 })
  expect(codeOf(await submit('slow', 7n))).toBe('RAIL_AMBIGUOUS')
  await faults({ latencyMs: 0 })
  const outcomes = {
    ok: 'ACKED',
    declined: 'REJECTED',
    lost: 'TIMEOUT',
    failed: 'TIMEOUT',
    slow: 'TIMEOUT',
  }
  for (const [payoutId, outcome] of Object.entries(outcomes)) {
    const record = await call(proxy.url, rail.submissions, { payoutId }, limits)
    expect(record).toMatchObject({ output: { items: [{ outcome, fencingToken: '7' }] } })
    // FR-20, FR-23: whatever came of it, no token presents it again.
    expect(codeOf(await submit(payoutId, 8n))).toBe('DUPLICATE_SUBMISSION')
    expect(await requests(payoutId)).toBe(1)
  }
})

test('FR-16, FR-17: a stale token is FENCED_OUT with both tokens, recorded, logged and counted', async () => {
  await submit('first', 9n, 'one-account')
  const before = await metric('lock_fenced_out_total{resource="rail"}')
  const stale = await submit('second', 8n, 'one-account')
  expect(stale).toMatchObject({
    envelope: {
      code: 'FENCED_OUT',
      details: {
        presentedToken: '8',
        highestToken: '9',
        resourceType: 'rail',
        resourceId: 'one-account',
        ownerId: 'worker',
      },
    },
  })
  expect(await requests('second')).toBe(0)
  expect(await metric('lock_fenced_out_total{resource="rail"}')).toBe(before + 1)
  expect(lines.some((line) => line.includes('"fenced_out"'))).toBe(true)
  const record = await call(proxy.url, rail.submissions, { payoutId: 'second' }, limits)
  expect(record).toMatchObject({ output: { items: [{ outcome: 'FENCED' }] } })
})

test('FR-18: a duplicate is counted, logged, and pages somebody', async () => {
  await submit('twice', 7n)
  const before = await metric('rail_duplicate_attempted_total')
  expect(codeOf(await submit('twice', 8n))).toBe('DUPLICATE_SUBMISSION')
  expect(await metric('rail_duplicate_attempted_total')).toBe(before + 1)
  expect(lines.some((line) => line.includes('duplicate_rail_submission_attempted'))).toBe(true)
})

test('a pushed floor shuts out every token up to it', async () => {
  const push = { ownerId: 'operator', accountId: 'floored', floor: '41' }
  expect(await call(proxy.url, rail.advance, push, limits)).toMatchObject({
    output: { fence: '41' },
  })
  expect(codeOf(await submit('late', 41n, 'floored'))).toBe('FENCED_OUT')
  expect(codeOf(await submit('current', 42n, 'floored'))).toBe('ok')
})

test('with no rail, nothing was presented: RAIL_UNAVAILABLE, and a later grant may try', async () => {
  const log = createLog('rail-proxy', { stream: { write: () => undefined } })
  const env = { RAIL_PROXY_LISTEN_PORT: '0', RAILDB_URL: database.url }
  const cutOff = await startRailProxy({ ...env, RAIL_URL: 'http://127.0.0.1:9' }, { log })
  const refused = await call(cutOff.url, rail.submit, input('unlucky', 7n), limits)
  await cutOff.close()
  expect(codeOf(refused)).toBe('RAIL_UNAVAILABLE')
  expect(codeOf(await submit('unlucky', 7n))).toBe('FENCED_OUT')
  expect(codeOf(await submit('unlucky', 8n))).toBe('ok')
  expect(await requests('unlucky')).toBe(1)
})

test('bad input never reaches the guard', async () => {
  const bad = (change: object) =>
    call(proxy.url, rail.submit, { ...input('bad', 7n), ...change }, limits)
  expect(codeOf(await bad({ fencingToken: '07' }))).toBe('INVALID_TOKEN')
  expect(codeOf(await bad({ idempotencyKey: 'other' }))).toBe('IDEMPOTENCY_CONFLICT')
  expect(codeOf(await bad({ amountMinor: 0 }))).toBe('VALIDATION_FAILED')
  expect(await requests('bad')).toBe(0)
})
