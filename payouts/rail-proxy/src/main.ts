import { runProgram } from '@dlock/messages'
import { startRailProxy } from './rail-proxy.ts'

await runProgram((env) => startRailProxy(env))
