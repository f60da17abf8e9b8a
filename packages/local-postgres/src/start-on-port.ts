import { createServer } from 'node:net'
import type { Clock } from '@dlock/system'
import { type Job, StartError, type Supervised, startSupervised } from './supervised.ts'

/** How long to wait for a killed owner's server, which its supervisor is still stopping. */
const IN_USE_FOR_MS = 20_000
const IN_USE_POLL_MS = 100
const PORT_TRIES = 10

export interface Started {
  readonly port: number
  readonly server: Supervised
}

/**
 * Starts postgres on the wanted port, or for 0 on one that is free.
 *
 * Only postgres can tell whether a port is free and a cluster unused, so it is asked by starting it:
 * on another port when the one found was taken meanwhile; once more while the server that a killed
 * owner left behind is being stopped.
 */
export async function startOnPort(wanted: number, job: Job): Promise<Started> {
  const giveUp = job.clock.monotonicNanos() + BigInt(IN_USE_FOR_MS) * 1_000_000n
  for (let tries = 1; ; ) {
    const port = wanted === 0 ? await freePort() : wanted
    const settings = { ...job.settings, port: String(port) }
    try {
      return { port, server: await startSupervised({ ...job, settings }) }
    } catch (error) {
      const cause = error instanceof StartError ? causeOf(error.log) : undefined
      if (cause === 'port taken') {
        if (wanted !== 0) throw new Error(`port ${port} of 127.0.0.1 is taken`)
        if (++tries > PORT_TRIES) throw error
      } else if (cause === 'in use') {
        if (job.clock.monotonicNanos() > giveUp) throw new Error(inUse(job.data, error))
        await pause(IN_USE_POLL_MS, job.clock)
      } else {
        throw error
      }
    }
  }
}

function causeOf(log: string): 'port taken' | 'in use' | undefined {
  if (log.includes('could not create any TCP/IP sockets')) return 'port taken'
  if (log.includes('lock file "postmaster.pid" already exists')) return 'in use'
  if (log.includes('pre-existing shared memory block')) return 'in use'
  return undefined
}

function inUse(data: string, error: unknown): string {
  const pid = /\(PID (\d+)\)/.exec((error as StartError).log)?.[1]
  return `the cluster in ${data} is in use by another PostgreSQL${pid === undefined ? '' : `, process ${pid}`}`
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      probe.close(() => resolve(port))
    })
  })
}

function pause(delayMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, resolve, { keepAlive: true })
  })
}
