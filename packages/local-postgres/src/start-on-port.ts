import { createServer } from 'node:net'
import { awaitEnd } from './other-server.ts'
import { type Job, StartError, type Supervised, startSupervised } from './supervised.ts'

const PORT_TRIES = 10

export interface Started {
  readonly port: number
  readonly server: Supervised
}

/**
 * Starts postgres on the wanted port, or for 0 on one that is free.
 *
 * Only postgres can tell whether a port is free and a cluster unused, so it is asked by starting it:
 * on another port when the one found was taken meanwhile; once more when the server that a killed
 * owner left behind has ended.
 */
export async function startOnPort(wanted: number, job: Job): Promise<Started> {
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
        await awaitEnd(job.data, job.clock)
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
