import { createLog, type RunningService } from '@dlock/messages'
import { afterEach, expect, test } from 'vitest'
import { startRailStub } from '../src/index.ts'

let rail: RunningService | undefined
afterEach(() => rail?.close())

async function started(env: Record<string, string> = {}): Promise<string> {
  const log = createLog('rail-stub', { stream: { write: () => undefined } })
  const settings = { RAIL_STUB_LISTEN_PORT: '0', RAIL_STUB_LATENCY: '0ms', ...env }
  rail = await startRailStub(settings, { log })
  return rail.url
}

const body = { clientRef: 'pay-1', amountMinor: 100, currency: 'EUR' }
const submit = (url: string, content: object = body): Promise<Response> =>
  fetch(`${url}/submit`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(content),
  })
const get = async (url: string): Promise<unknown> => (await fetch(url)).json()

test('FR-21: every request is a fresh transfer, the same one too', async () => {
  const url = await started()
  const first = (await (await submit(url)).json()) as { railReference: string }
  const second = (await (await submit(url)).json()) as { railReference: string }
  expect(first.railReference).not.toBe(second.railReference)
  expect(await get(`${url}/transfers?clientRef=pay-1`)).toMatchObject({
    transfers: [first, second],
  })
  expect(await get(`${url}/requests`)).toMatchObject({ requests: [{ number: 1 }, { number: 2 }] })
})

test('a decline does nothing; a failure does not say so', async () => {
  const url = await started({ RAIL_STUB_DECLINE_RATE: '1' })
  expect((await submit(url)).status).toBe(422)
  const faults = { declineRate: 0, failureRate: 1 }
  await fetch(`${url}/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(faults),
  })
  expect((await submit(url)).status).toBe(500)
  expect(await get(`${url}/transfers?clientRef=pay-1`)).toEqual({ transfers: [] })
})

test('a lost reply: the money has left, and the caller cannot know', async () => {
  const url = await started({ RAIL_STUB_LOST_REPLY_RATE: '1' })
  await expect(submit(url)).rejects.toThrow()
  const { transfers } = (await get(`${url}/transfers?clientRef=pay-1`)) as { transfers: unknown[] }
  expect(transfers).toHaveLength(1)
})

test('the look-up lags behind', async () => {
  const url = await started({ RAIL_STUB_LOOKUP_LAG: '10m' })
  expect((await submit(url)).status).toBe(200)
  expect(await get(`${url}/transfers?clientRef=pay-1`)).toEqual({ transfers: [] })
})

test('bad input is refused with the envelope', async () => {
  const url = await started()
  for (const bad of [{}, { ...body, amountMinor: 1.5 }, { ...body, clientRef: 7 }]) {
    const refused = await submit(url, bad)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'VALIDATION_FAILED' })
  }
  const faults = await fetch(`${url}/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"noSuchRate":1}',
  })
  expect(faults.status).toBe(400)
})
