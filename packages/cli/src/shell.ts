import type { Clock } from '@dlock/system'
import { signalStatus } from './exit-codes.ts'

/** The side of its process that a subcommand sees. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** A result: one line or more, for people or as JSON. */
  readonly out: (text: string) => void
  /** What a person should know, and a program should not read. */
  readonly err: (text: string) => void
  /** Calls `listener` with each signal that the process gets. @returns how to stop */
  readonly onSignal: (listener: (signal: NodeJS.Signals) => void) => () => void
}

/** What a terminal, a supervisor or another `dlock run` may send, and can be passed on. */
const SIGNALS: readonly NodeJS.Signals[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
  'SIGTSTP',
]

/** This process's own side. */
export function processShell(clock: Clock): Shell {
  // The reader has seen enough, as in "dlock ls | head".
  process.stdout.on('error', () => process.exit(signalStatus('SIGPIPE')))
  // Whoever read the messages is gone, which is no reason to stop what runs under a lock.
  process.stderr.on('error', () => {})
  return {
    env: process.env,
    clock,
    out: (text) => process.stdout.write(`${text}\n`),
    err: (text) => process.stderr.write(`dlock: ${text}\n`),
    onSignal(listener) {
      for (const signal of SIGNALS) process.on(signal, listener)
      return () => {
        for (const signal of SIGNALS) process.off(signal, listener)
      }
    },
  }
}
