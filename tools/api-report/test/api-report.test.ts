import { describe, expect, test } from 'vitest'
import { apiReport, published } from './report.ts'

const reports = new Map(published.map((name) => [name, apiReport(name)]))

describe('the public API is what the checked-in report says; after a change on purpose: npm run api', () => {
  test.for(published)('%s', async (name) => {
    await expect(reports.get(name)).toMatchFileSnapshot(`../reports/${name}.api.md`)
  })
})

test.for(published)('every export of %s has a doc comment', (name) => {
  const undocumented = /@public \(undocumented\)\nexport (?:declare )?(?:abstract )?(.*)/g
  const found = [...(reports.get(name) ?? '').matchAll(undocumented)]
  expect(found.map(([, declaration]) => declaration)).toEqual([])
})
