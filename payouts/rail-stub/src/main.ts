import { runProgram } from '@dlock/messages'
import { startRailStub } from './rail-stub.ts'

await runProgram((env) => startRailStub(env))
