import { LockLostError, RetryableLockError, SessionDeadError } from '@dlock/lock-api'
import { systemClock } from '@dlock/system'
import { type Command, CommanderError } from 'commander'
import { CommandFailure, exitCodes } from './exit-codes.ts'
import { createProgram } from './program.ts'
import { processShell, type Shell } from './shell.ts'

/**
 * dlock, from its command line to its exit status.
 *
 * @param args without the program's name
 */
export async function main(
  args: readonly string[] = process.argv.slice(2),
  shell: Shell = processShell(systemClock),
): Promise<number> {
  let exitCode: number = exitCodes.done
  const program = createProgram(shell, (code) => {
    exitCode = code
  })
  for (const command of withSubcommands(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => shell.out(text.trimEnd()),
      writeErr: (text) => {
        if (text.startsWith('error: ')) shell.err(text.trimEnd().slice('error: '.length))
        else shell.out(text.trimEnd())
      },
    })
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return explain(error, shell)
  }
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)]
}

/** Whatever went wrong, in one line, and its exit code. */
function explain(error: unknown, shell: Shell): number {
  if (error instanceof CommanderError) {
    // It has said it already; help that was asked for is no failure.
    return error.exitCode === 0 ? exitCodes.done : exitCodes.failed
  }
  const message = error instanceof Error ? error.message : String(error)
  shell.err(message)
  if (error instanceof CommandFailure) return error.exitCode
  if (error instanceof LockLostError) return exitCodes.lost
  if (error instanceof RetryableLockError || error instanceof SessionDeadError) {
    return exitCodes.unavailable
  }
  return exitCodes.failed
}
