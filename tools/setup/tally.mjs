/**
 * `node tools/setup/tally.mjs REPORT STATUS`: prints "PASSED FAILED" from vitest's JSON report and
 * its exit status. What vitest counts nowhere is a failure here: no report, no test, a file that
 * did not load, an unhandled rejection outside every test.
 */
import { existsSync, readFileSync } from 'node:fs'
import process from 'node:process'

const [report, status] = process.argv.slice(2)
const { passed, failed } = existsSync(report)
  ? count(JSON.parse(readFileSync(report, 'utf8')))
  : { passed: 0, failed: 0 }
const unaccounted = failed === 0 && (passed === 0 || status !== '0') ? 1 : 0
console.log(`${passed} ${failed + unaccounted}`)

function count({ numPassedTests, numFailedTests, testResults }) {
  const notLoaded = testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((t) => t.status !== 'failed'),
  )
  return { passed: numPassedTests, failed: numFailedTests + notLoaded.length }
}
