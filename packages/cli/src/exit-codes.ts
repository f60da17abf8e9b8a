import { constants } from 'node:os'

/**
 * What dlock says with its exit status. `run` passes the command's own status through, so its
 * codes are where commands have none of theirs, as `timeout` and `env` do it.
 */
export const exitCodes = {
  done: 0,
  /** The answer is no: nobody holds the lock, the grant is another's, the tokens are not safe. */
  no: 1,
  /** `run`: another held the lock for as long as the wait lasted. The command was not started. */
  notAcquired: 121,
  /** `run`: the lock was lost, and the command was stopped. */
  lost: 122,
  /** The service could not be reached, or could not decide. Of `run`: the command was not started. */
  unavailable: 123,
  /** Wrong use, or a failure of dlock's own. */
  failed: 125,
  /** `run`: the command was found and cannot be run. */
  cannotRun: 126,
  /** `run`: the command was not found. */
  notFound: 127,
  /** `run`: the command was ended by signal number n: 128 + n. */
  signalled: 128,
} as const

/** As a shell says that a signal ended a process. */
export function signalStatus(signal: NodeJS.Signals | null): number {
  return exitCodes.signalled + (signal === null ? 0 : constants.signals[signal])
}

/** Ends a subcommand: the message goes to standard error, the code to the shell. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}
