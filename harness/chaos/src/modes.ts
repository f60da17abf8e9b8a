/** One way to run the SIGSTOP experiment. */
export interface Mode {
  readonly name: string
  readonly accountGuard: boolean
  readonly railGuard: boolean
  /** Whether the stopped worker asks itself if it still holds the lock. */
  readonly livenessChecks: boolean
  /** Where it is stopped: one round for each. */
  readonly stopAfter: readonly ('claimed' | 'submitted')[]
}

/**
 * The stopped worker meets the guard of the step that it was about to take: right after its claim,
 * that is the account's; right before the rail, the rail's. With both guards on it is stopped at
 * each of them in turn. With both off it is stopped right before the rail, because the payout's
 * state machine has no switch, and would stop it before that by the payout's state.
 */
export const MODES: readonly Mode[] = [
  {
    name: 'both-off',
    accountGuard: false,
    railGuard: false,
    livenessChecks: false,
    stopAfter: ['submitted'],
  },
  {
    name: 'both-on',
    accountGuard: true,
    railGuard: true,
    livenessChecks: false,
    stopAfter: ['claimed', 'submitted'],
  },
  {
    name: 'account-only',
    accountGuard: true,
    railGuard: false,
    livenessChecks: false,
    stopAfter: ['claimed'],
  },
  {
    name: 'rail-only',
    accountGuard: false,
    railGuard: true,
    livenessChecks: false,
    stopAfter: ['submitted'],
  },
  {
    name: 'sdk-checks',
    accountGuard: true,
    railGuard: true,
    livenessChecks: true,
    stopAfter: ['claimed'],
  },
]
