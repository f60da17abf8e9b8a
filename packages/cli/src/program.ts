import { Command, Option } from 'commander'
import {
  keyArgument,
  leaseArgument,
  tokenArgument,
  tokenFileArgument,
  tokenListArgument,
  urlArgument,
  urlListArgument,
  waitArgument,
} from './arguments.ts'
import { exitCodes } from './exit-codes.ts'
import { inspect, listLocks, type RevokeOptions, revoke } from './locks.ts'
import { type RunOptions, run } from './run.ts'
import { Service } from './service.ts'
import { listSessions } from './sessions.ts'
import type { Shell } from './shell.ts'
import { advanceTokens, checkTokens } from './tokens.ts'
import { watch } from './watch.ts'

const USUAL_URL = new URL('http://127.0.0.1:7400')

const RUN_HELP = `
Exit status: the command's own (128 + n when signal n ended it), or
  ${exitCodes.notAcquired}  another held the lock for as long as --wait; the command was not started
  ${exitCodes.lost}  the lock was lost; the command and all its processes were stopped
  ${exitCodes.unavailable}  the service could not be reached or could not decide; not started
  ${exitCodes.failed}  wrong use, or a failure of dlock's own
  ${exitCodes.cannotRun}  the command cannot be run       ${exitCodes.notFound}  there is no such command

The command finds DLOCK_KEY and DLOCK_FENCING_TOKEN in its environment. Pass the token on with every
write: only the resource that checks it is safe from a holder that is late. The command runs in a
process group of its own, without a controlling terminal; what it leaves running in that group is
stopped before the lock is released.`

const CODES_HELP = `
Exit status: 0; ${exitCodes.no} the answer is no; ${exitCodes.unavailable} the service could not be reached or could not decide; ${exitCodes.failed}
wrong use, or a failure of dlock's own. For run see: dlock run --help`

/** The command line. Whatever a subcommand comes to goes to `finish`. */
export function createProgram(shell: Shell, finish: (exitCode: number) => void): Command {
  const program = new Command('dlock')
    .description('Locks that stay safe when their holder does not.')
    .enablePositionalOptions()
    .addHelpText('after', CODES_HELP)

  /** Each of them talks to a service, and most can answer in JSON. */
  const command = (parent: Command, spelling: string, description: string): Command =>
    parent
      .command(spelling)
      .description(description)
      .addOption(
        new Option('--url <url>', 'where the lock service is; or DLOCK_URL')
          .argParser(urlArgument)
          .default(USUAL_URL, USUAL_URL.origin)
          .env('DLOCK_URL'),
      )
  const operators = (parent: Command, spelling: string, description: string): Command =>
    command(parent, spelling, description).option('--json', 'JSON, one object a line', false)

  command(program, 'run <command...>', 'run a command while holding a lock')
    .passThroughOptions()
    .requiredOption('--key <key>', 'the lock', keyArgument)
    .addOption(lease('--ttl', 'the lease, renewed while the command runs').default(30_000, '30s'))
    .addOption(
      new Option('--wait <duration>', 'how long to wait for another holder')
        .argParser(waitArgument)
        .default(0, 'not at all'),
    )
    .addOption(lease('--max-hold', 'stop the command after this long'))
    .option('--owner <name>', 'who holds it, for people')
    .addHelpText('after', RUN_HELP)
    .action(async (words: string[], options: RunOptions) =>
      finish(await run(options, words, shell)),
    )

  operators(program, 'ls [prefix]', 'list the locks that are held').action(
    async (prefix: string | undefined, { url, json }: Common) =>
      finish(await listLocks(new Service(url), { prefix, json }, shell)),
  )

  operators(program, 'inspect', 'look at one lock')
    .addArgument(program.createArgument('<key>').argParser(keyArgument))
    .action(async (key: string, { url, json }: Common) =>
      finish(await inspect(new Service(url), { key, json }, shell)),
    )

  operators(program, 'revoke', 'take a lock away from its holder, whoever it is')
    .addArgument(program.createArgument('<key>').argParser(keyArgument))
    .requiredOption('--reason <text>', 'why, for the audit record; at least 8 characters')
    .option('--operator <name>', 'who, for the audit record (default: you)')
    .option('--token <token>', 'only when it is held with this token', tokenArgument)
    .option(
      '--push <url>',
      "a guard's advance, told the new floor; repeatable",
      urlListArgument,
      [],
    )
    .action(async (key: string, { url, ...options }: Common & Omit<RevokeOptions, 'key'>) =>
      finish(await revoke(new Service(url), { ...options, key }, shell)),
    )

  operators(program, 'sessions', 'list the clients that are alive').action(
    async ({ url, json }: Common) => finish(await listSessions(new Service(url), { json }, shell)),
  )

  operators(program, 'watch', 'tell what happens on one server, as it happens').action(
    async ({ url, json }: Common) => finish(await watch(new Service(url), { json }, shell)),
  )

  const tokens = program.command('tokens').description('the counter behind the fencing tokens')
  operators(tokens, 'check', 'whether new tokens are above every fence; after a restore')
    .option('--fence <token>', 'the highest that a guard holds; repeatable', tokenListArgument, [])
    .option('--fences-from <file>', 'one a line; - for standard input', tokenFileArgument, [])
    .action(async ({ url, json, fence, fencesFrom }: Common & Fences) =>
      finish(
        await checkTokens(new Service(url), { fences: [...fence, ...fencesFrom], json }, shell),
      ),
    )
  operators(tokens, 'advance', 'make every later token exceed a number; forward only')
    .requiredOption('--above <token>', 'the number', tokenArgument)
    .action(async ({ url, json, above }: Common & { readonly above: bigint }) =>
      finish(await advanceTokens(new Service(url), { above, json }, shell)),
    )
  return program
}

function lease(flag: string, description: string): Option {
  return new Option(`${flag} <duration>`, description).argParser(leaseArgument)
}

interface Common {
  readonly url: URL
  readonly json: boolean
}

interface Fences {
  readonly fence: readonly bigint[]
  readonly fencesFrom: readonly bigint[]
}
