import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { startLocalPostgres } from '@dlock/local-postgres'
import { runMode } from './experiment.ts'
import { MODES } from './modes.ts'
import { backendOf, startLockd } from './payout-town.ts'
import type { Verdict } from './verdict.ts'

const { values } = parseArgs({
  options: {
    repeat: { type: 'string', default: '1' },
    mode: { type: 'string' },
    backend: { type: 'string', default: 'pg' },
    folder: { type: 'string', default: 'evidence/experiment' },
  },
})
const repeat = Number(values.repeat)
const modes = MODES.filter(({ name }) => values.mode === undefined || values.mode === name)
if (!Number.isInteger(repeat) || repeat < 1 || modes.length === 0) {
  console.error(
    `experiment [--repeat N] [--backend pg|etcd] [--folder PATH] [--mode ${MODES.map(({ name }) => name).join('|')}]`,
  )
  process.exit(2)
}

const started = new Date().toISOString().replaceAll(/[:.]/g, '-')
const folder = resolve(values.folder, started)
await mkdir(folder, { recursive: true })
console.log(`SIGSTOP experiment, ${repeat} time(s); evidence in ${values.folder}/${started}\n`)

const verdicts: { readonly run: number; readonly mode: string; readonly verdict: Verdict }[] = []
{
  await using postgres = await startLocalPostgres({ settings: { max_connections: '300' } })
  await using lockd = await startLockd(postgres, backendOf(values.backend))
  for (let run = 1; run <= repeat; run += 1) {
    const around = { postgres, lockUrl: lockd.url, folder: join(folder, `run-${run}`) }
    const results = await Promise.all(
      modes.map(async (mode) => ({
        run,
        mode: mode.name,
        verdict: await runMode(mode, around).catch(
          (error: unknown): Verdict => ({ passed: false, says: (error as Error).message }),
        ),
      })),
    )
    verdicts.push(...results)
    for (const { mode, verdict } of results) {
      console.log(
        `run ${run}  ${mode.padEnd(12)}  ${verdict.passed ? 'pass' : 'FAIL'}  ${verdict.says}`,
      )
    }
  }
}

console.log('\nmode          passed')
for (const { name } of modes) {
  const own = verdicts.filter(({ mode }) => mode === name)
  const passed = own.filter(({ verdict }) => verdict.passed).length
  console.log(`${name.padEnd(12)}  ${passed} of ${own.length}`)
}
await writeFile(join(folder, 'verdicts.json'), `${JSON.stringify(verdicts, undefined, 2)}\n`)
process.exitCode = verdicts.every(({ verdict }) => verdict.passed) ? 0 : 1
