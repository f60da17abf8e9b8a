import { paymentOperations } from '@dlock/messages'
import { expect, test, vi } from 'vitest'
import { readPayoutFile } from '../src/payout-file.ts'

const HEADER = 'payoutId,accountId,amountMinor,currency,beneficiaryRef'

test('a file of nothing but faulty lines is not read to its end', () => {
  const { input } = paymentOperations.createPayout
  const faults = vi.spyOn(input, 'faults')
  try {
    const file = `${HEADER}\n${'x\n'.repeat(10_000)}`
    expect(() => readPayoutFile(file, 'test')).toThrow(/line 2/)
    expect(faults.mock.calls.length).toBeLessThan(25)
  } finally {
    faults.mockRestore()
  }
})

test('no quoting, padding or control character passes for a field', () => {
  const bad = [
    '"p1",a,1,EUR,b',
    ' p1,a,1,EUR,b',
    'p1,a,1,EUR,b ',
    'p1\u0000,a,1,EUR,b',
    'p1,a,+1,EUR,b',
  ]
  for (const line of [...bad, 'p1,a,1.0,EUR,b', 'p1,a,1,eur,b', 'p1,a,1,EUR', '']) {
    expect(() => readPayoutFile(`${HEADER}\n${line}\np2,a,1,EUR,b`, 'test')).toThrow(/line 2/)
  }
  expect(readPayoutFile(`\uFEFF${HEADER}\r\np1,a,1,EUR,b\r\n`, 'test')).toHaveLength(1)
  expect(readPayoutFile(HEADER, 'test')).toEqual([])
})
