import { runProgram } from '@dlock/messages'
import { startPayoutExecutor } from './payout-executor.ts'

await runProgram((env) => startPayoutExecutor(env))
