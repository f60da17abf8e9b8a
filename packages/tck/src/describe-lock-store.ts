import { describe, test } from 'vitest'
import type { StoreFixture } from './store-case.ts'
import { checkCapabilities, missingFor, runStoreCase, storeCases } from './store-cases.ts'

/** Only against a test that hangs; no case is decided by it. */
const HANGS_AFTER_MS = 120_000

/**
 * Registers every case as a test of the store. A case that needs a capability which the store does
 * not have is registered as skipped, by name; that the store really lacks it is a test, too.
 */
export function describeLockStore(label: string, fixture: StoreFixture): void {
  describe(label, { timeout: HANGS_AFTER_MS, concurrent: fixture.sideBySide === true }, () => {
    test('declares exactly the capabilities that its fixture expects', () =>
      checkCapabilities(fixture))

    for (const storeCase of storeCases) {
      const missing = missingFor(storeCase, fixture)
      test.skipIf(missing.length > 0)(storeCase.name, () => runStoreCase(storeCase, fixture))
    }
  })
}
