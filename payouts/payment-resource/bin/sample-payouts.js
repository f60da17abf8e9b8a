#!/usr/bin/env node
// A CSV file of N payouts over M accounts, for POST /v1/payouts/import: sample-payouts [N=1000] [M=50]
import process from 'node:process'

const [payouts = 1_000, accounts = 50] = process.argv.slice(2).map(Number)
console.log('payoutId,accountId,amountMinor,currency,beneficiaryRef')
for (let i = 0; i < payouts; i += 1) {
  console.log(`pay-${i},acc-${i % accounts},${100 + ((i * 37) % 9_900)},EUR,ben-${i % 97}`)
}
