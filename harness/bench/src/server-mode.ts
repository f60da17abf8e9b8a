import { fileURLToPath } from 'node:url'
import { type RunningProcess, startProcess } from '@dlock/faults'
import { LockClient } from '@dlock/lock-client'

const LOCKD = fileURLToPath(new URL('../../../apps/lockd/bin/lockd.js', import.meta.url))

/** `lockd` as a process, as `npm start` runs it, on the run's PostgreSQL. */
export class ServerMode implements AsyncDisposable {
  readonly #lockd: RunningProcess
  readonly #url: string

  static async start(databaseUrl: string): Promise<ServerMode> {
    const lockd = await startProcess(process.execPath, {
      args: [LOCKD, '--lock-listen-port', '0', '--lock-log-level', 'warn'],
      env: { LOCKDB_URL: databaseUrl, npm_lifecycle_event: 'start' },
    })
    const [url = ''] = await lockd.waitForLine(/http:\/\/127\.0\.0\.1:\d+/)
    return new ServerMode(lockd, url)
  }

  private constructor(lockd: RunningProcess, url: string) {
    this.#lockd = lockd
    this.#url = url
  }

  connect(transport: 'websocket' | 'http'): LockClient {
    return new LockClient({ url: this.#url, transport })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lockd.stop()
  }
}
