import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { startLocalPostgres } from '@dlock/local-postgres'
import { runMode } from './experiment.ts'
import { MODES, type Mode } from './modes.ts'
import { type Backend, backendOf, startLockd } from './payout-town.ts'
import type { Verdict } from './verdict.ts'

const { repeat, modes, backend, ...values } = readOptions()

const started = new Date().toISOString().replaceAll(/[:.]/g, '-')
const folder = resolve(values.folder, started)
await mkdir(folder, { recursive: true })
console.log(`SIGSTOP experiment, ${repeat} time(s); evidence in ${values.folder}/${started}\n`)

const verdicts: { readonly run: number; readonly mode: string; readonly verdict: Verdict }[] = []
{
  await using postgres = await startLocalPostgres({ settings: { max_connections: '300' } })
  await using lockd = await startLockd(postgres, backend)
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

interface Options {
  readonly repeat: number
  readonly modes: readonly Mode[]
  readonly backend: Backend
  readonly folder: string
}

/** Ends the process when they make no sense. */
function readOptions(): Options {
  const names = MODES.map(({ name }) => name).join('|')
  try {
    const { values } = parseArgs({
      options: {
        repeat: { type: 'string', default: '1' },
        mode: { type: 'string' },
        backend: { type: 'string', default: 'pg' },
        folder: { type: 'string', default: 'evidence/experiment' },
      },
    })
    const repeat = Number(values.repeat)
    if (!Number.isInteger(repeat) || repeat < 1) {
      throw new RangeError(`repeat must be a whole number from 1, got ${values.repeat}`)
    }
    const modes = MODES.filter(({ name }) => values.mode === undefined || values.mode === name)
    if (modes.length === 0) throw new RangeError(`mode must be ${names}, got ${values.mode}`)
    return { repeat, modes, backend: backendOf(values.backend), folder: values.folder }
  } catch (error) {
    console.error((error as Error).message)
    console.error(`experiment [--repeat N] [--backend pg|etcd] [--folder PATH] [--mode ${names}]`)
    process.exit(2)
  }
}
