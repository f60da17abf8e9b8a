/**
 * `node tools/setup/run.mjs [SCRIPT [ARGUMENT…]]`: makes this checkout ready (Node checked, packages
 * installed, everything built), then becomes SCRIPT. Plain JavaScript with no dependency, because
 * it is what runs before anything is installed. A second run with nothing changed takes about a
 * second.
 *
 * SCRIPT runs in this very process, so that signals and exit codes need no forwarding.
 */
import { resolve } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { stopWithParent } from './parent.mjs'
import { makeReady } from './ready.mjs'

const [script, ...rest] = process.argv.slice(2)

makeReady()
if (script !== undefined) {
  stopWithParent()
  const path = resolve(script)
  process.argv = [process.execPath, path, ...rest]
  await import(pathToFileURL(path).href)
}
