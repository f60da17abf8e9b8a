/**
 * `npm run traffic`: drives one load profile, with the violation detector beside it, and prints what
 * it found; figures only when the detector reads 0. Exits with 1 when it does not.
 *
 * @packageDocumentation
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { formatHistory } from '@dlock/model'
import { systemClock, systemRandom } from '@dlock/system'
import { type Backend, memory, postgres, remote } from './backends.ts'
import { type ProfileName, profiles } from './profiles.ts'
import { report } from './report.ts'
import { run } from './run.ts'

const usage = `npm run traffic -- [OPTION…]

  --profile NAME   ${Object.keys(profiles).join(', ')} (default uncontended)
  --backend NAME   memory (default) or pg: an engine over that store in this process
  --url URL        a lockd that runs already, instead
  --seconds N      how long (default 5)
  --history DIR    write a history for each key, for npm run check-history
`

const { values } = parseArgs({
  options: {
    profile: { type: 'string', default: 'uncontended' },
    backend: { type: 'string', default: 'memory' },
    url: { type: 'string' },
    seconds: { type: 'string', default: '5' },
    history: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const seconds = Number(values.seconds)
const open = values.url === undefined ? opener(values.backend) : () => remote(values.url ?? '')
if (values.help || open === undefined || !isProfile(values.profile) || !(seconds > 0)) {
  process.stderr.write(usage)
  process.exitCode = values.help ? 0 : 2
} else {
  await drive(values.profile, open)
}

async function drive(name: ProfileName, openBackend: () => Promise<Backend>): Promise<void> {
  await using backend = await openBackend()
  const endNanos = systemClock.monotonicNanos() + BigInt(Math.round(seconds * 1e9))
  const result = await run({
    ...backend,
    profile: profiles[name],
    backend: backend.name,
    clock: systemClock,
    random: systemRandom,
    seed: null,
    goOn: () => systemClock.monotonicNanos() < endNanos,
  })
  const title = `${name} (${profiles[name].what}) on ${backend.name}`
  process.stdout.write(`${title}, ${result.seconds.toFixed(1)} s: ${report(result)}\n`)
  if (result.detector.violations > 0) process.exitCode = 1
  if (values.history === undefined) return
  await mkdir(values.history, { recursive: true })
  for (const history of result.histories) {
    const file = `${encodeURIComponent(history.header.key)}.ndjson`
    await writeFile(join(values.history, file), formatHistory(history))
  }
}

function opener(backend: string): (() => Promise<Backend>) | undefined {
  return backend === 'memory' ? memory : backend === 'pg' ? postgres : undefined
}

function isProfile(name: string): name is ProfileName {
  return Object.hasOwn(profiles, name)
}
