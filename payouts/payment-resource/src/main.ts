import { runProgram } from '@dlock/messages'
import { startPaymentResource } from './payment-resource.ts'

await runProgram((env) => startPaymentResource(env))
