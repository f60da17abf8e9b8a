import type { WireEvent } from '@dlock/protocol'
import { exitCodes } from './exit-codes.ts'
import type { Service } from './service.ts'
import type { Shell } from './shell.ts'

/** `dlock watch`: what happens on one server from now on, until it is interrupted. */
export async function watch(
  service: Service,
  { json }: { readonly json: boolean },
  shell: Shell,
): Promise<number> {
  const interrupted = new AbortController()
  const stopListening = shell.onSignal((signal) => {
    if (signal === 'SIGINT' || signal === 'SIGTERM') interrupted.abort()
  })
  try {
    for await (const event of service.events(interrupted.signal)) {
      shell.out(json ? JSON.stringify(event) : told(event))
    }
  } catch (error) {
    if (!interrupted.signal.aborted) throw error
  } finally {
    stopListening()
  }
  if (interrupted.signal.aborted) return exitCodes.done
  shell.err('the server ended the stream')
  return exitCodes.unavailable
}

function told(event: WireEvent): string {
  const { type, at, ...rest } = event
  const facts = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return `${at}  ${type.padEnd(16)}  ${facts.join(' ')}`
}
