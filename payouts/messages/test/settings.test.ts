import { expect, test } from 'vitest'
import { kinds, readSettings, type Settings } from '../src/index.ts'

interface Some {
  readonly fencing: boolean
  readonly latencyMs: number
  readonly rate: number
  readonly databaseUrl: string
}
const table: Settings<Some> = {
  fencing: { key: 'payment.fencing.enabled', kind: kinds.flag, fallback: true },
  latencyMs: { key: 'rail.stub.latency', kind: kinds.duration(0, 60_000), fallback: 250 },
  rate: { key: 'rail.stub.decline.rate', kind: kinds.rate, fallback: 0 },
  databaseUrl: { key: 'paydb.url', kind: kinds.databaseUrl },
}

test('settings are read by their mechanical names', () => {
  const env = { PAYDB_URL: 'postgres://x/y', RAIL_STUB_LATENCY: '1500ms', OTHER: 'x' }
  expect(readSettings(table, env)).toEqual({
    fencing: true,
    latencyMs: 1_500,
    rate: 0,
    databaseUrl: 'postgres://x/y',
  })
})

test('every mistake is named at once; a typo is one; no secret is repeated', () => {
  const env = {
    PAYMENT_FENCING_ENABLED: 'yes',
    PAYMENT_FENCING_ENABELD: 'false',
    RAIL_STUB_LATENCY: '1h',
    RAIL_STUB_DECLINE_RATE: '1.5',
    PAYDB_URL: 'secret-but-no-url',
  }
  const read = (): unknown => readSettings(table, env)
  for (const part of ['PAYMENT_FENCING_ENABLED', 'ENABELD', 'LATENCY', 'DECLINE', 'PAYDB_URL']) {
    expect(read).toThrow(part)
  }
  expect(read).not.toThrow('secret')
})
