import { LockEngine } from '@dlock/engine'
import { createLockServer, createLog, LockMetrics } from '@dlock/lock-server'
import { MemoryStore } from '@dlock/store-memory'
import { onTestFinished } from 'vitest'

export interface Served {
  readonly url: string
  readonly port: number
  readonly engine: LockEngine
}

/** A lock service on a free port, gone when the test is over. */
export async function serve(): Promise<Served> {
  const store = new MemoryStore()
  const metrics = new LockMetrics(store.backendId())
  const engine = new LockEngine({ store, meter: metrics, maxWaitMs: 60_000 })
  await engine.start()
  const server = createLockServer({ engine, metrics, log: createLog({ level: 'silent' }) })
  const { url, port } = await server.listen({ port: 0 })
  onTestFinished(async () => {
    await server.close({ withinMs: 0 })
    await engine.close()
  })
  return { url, port, engine }
}
