/**
 * `npm run check-history -- FILE…`: checks each file, and draws the first that is wrong when
 * `--picture FILE` says where to. Exits with 1 when one is not linearizable or undecided, with 2
 * when one is malformed.
 *
 * @packageDocumentation
 */
import { readFile, writeFile } from 'node:fs/promises'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { parseHistory } from '@dlock/model'
import { checkText } from './check.ts'
import { picture } from './picture.ts'
import { describeVerdict } from './wording.ts'

const { values, positionals } = parseArgs({
  options: { picture: { type: 'string' } },
  allowPositionals: true,
})

if (positionals.length === 0) {
  process.stderr.write('npm run check-history -- [--picture FILE.html] FILE.ndjson…\n')
  process.exitCode = 2
}

let pictured = false
for (const file of positionals) {
  const text = await readFile(file, 'utf8')
  const verdict = checkText(text)
  process.stdout.write(`${file}: ${describeVerdict(verdict)}\n`)
  if (verdict.kind === 'linearizable') continue
  process.exitCode = Math.max(Number(process.exitCode ?? 0), verdict.kind === 'malformed' ? 2 : 1)
  if (values.picture !== undefined && !pictured && verdict.kind !== 'malformed') {
    await writeFile(values.picture, picture(parseHistory(text), verdict))
    pictured = true
  }
}
