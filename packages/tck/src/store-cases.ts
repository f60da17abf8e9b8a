import assert from 'node:assert/strict'
import { capabilitiesOf } from '@dlock/lock-api'
import { argumentCases } from './cases/arguments.ts'
import { concurrencyCases } from './cases/concurrency.ts'
import { expiryCases } from './cases/expiry.ts'
import { grantCases } from './cases/grants.ts'
import { keyCases } from './cases/keys.ts'
import { listingCases } from './cases/listing.ts'
import { modelCases } from './cases/model.ts'
import { reapingCases } from './cases/reaping.ts'
import { replicaCases } from './cases/replicas.ts'
import { revocationCases } from './cases/revocation.ts'
import { sessionCases } from './cases/sessions.ts'
import { tokenCases } from './cases/tokens.ts'
import { transferCases } from './cases/transfer.ts'
import { waitingCases } from './cases/waiting.ts'
import { need } from './steps.ts'
import type { CapabilityName, StoreCase, StoreFixture } from './store-case.ts'

const healthCases: readonly StoreCase[] = [
  {
    name: 'a store that can decide says that it is healthy',
    needs: ['health'],
    async run({ store }) {
      await need(store, 'health').checkHealth()
    },
  },
  {
    name: 'the bounds of TTLs are whole milliseconds, and the shortest lease keeps the granularity',
    needs: ['ttlBounds'],
    async run({ store }) {
      const { granularityMs, minTtlMs, maxLatenessMs } = need(store, 'ttlBounds')
      assert.ok(Number.isSafeInteger(granularityMs) && granularityMs >= 1)
      assert.ok(Number.isSafeInteger(minTtlMs) && minTtlMs >= 1)
      assert.ok(Number.isSafeInteger(maxLatenessMs) && maxLatenessMs >= 0)
      assert.equal(minTtlMs % granularityMs, 0)
    },
  },
]

/** Everything that makes a store a store. No two cases share a name. */
export const storeCases: readonly StoreCase[] = [
  ...grantCases,
  ...expiryCases,
  ...sessionCases,
  ...tokenCases,
  ...keyCases,
  ...argumentCases,
  ...revocationCases,
  ...reapingCases,
  ...concurrencyCases,
  ...replicaCases,
  ...modelCases,
  ...waitingCases,
  ...transferCases,
  ...listingCases,
  ...healthCases,
]

/** The capabilities that the case needs and the fixture does not expect; none: it is to be run. */
export function missingFor(
  storeCase: StoreCase,
  fixture: Pick<StoreFixture, 'capabilities'>,
): readonly CapabilityName[] {
  return (storeCase.needs ?? []).filter((name) => !fixture.capabilities.includes(name))
}

/** Runs one case in a namespace of its own. Rejects when the store breaks the rule. */
export async function runStoreCase(storeCase: StoreCase, fixture: StoreFixture): Promise<void> {
  const given = await fixture.open()
  try {
    await storeCase.run(given)
  } finally {
    await given.close()
  }
}

/** Rejects unless the store declares what its fixture expects, and nothing else. */
export async function checkCapabilities(fixture: StoreFixture): Promise<void> {
  const given = await fixture.open()
  try {
    const declared = Object.entries(capabilitiesOf(given.store))
      .filter(([, capability]) => capability !== undefined)
      .map(([name]) => name)
    assert.deepEqual(declared.toSorted(), [...fixture.capabilities].toSorted())
  } finally {
    await given.close()
  }
}
