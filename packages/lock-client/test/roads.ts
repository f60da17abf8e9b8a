import { type LockEngine as Engine, LockEngine } from '@dlock/engine'
import { createLockServer, createLog, LockMetrics } from '@dlock/lock-server'
import { MemoryStore } from '@dlock/store-memory'
import { onTestFinished } from 'vitest'
import { LockClient, type LockClientOptions } from '../src/index.ts'

/** A real service, in this process and behind an address; gone when the test is over. */
export interface Service {
  readonly engine: Engine
  readonly store: MemoryStore
  readonly url: string
  readonly port: number
  close(options?: { readonly withinMs?: number }): Promise<void>
}

export async function startService(port = 0, store = new MemoryStore()): Promise<Service> {
  const metrics = new LockMetrics(store.backendId())
  const engine = new LockEngine({ store, meter: metrics })
  await engine.start()
  const log = createLog({ level: 'silent' })
  const server = createLockServer({ engine, metrics, log })
  const address = await server.listen({ port })
  const close: Service['close'] = (options) => server.close(options)
  onTestFinished(async () => {
    await close({ withinMs: 0 })
    await engine.close()
  })
  return { engine, store, url: address.url, port: address.port, close }
}

/** The roads that a client may take to it; the same is expected of each. */
export const roads: readonly Road[] = ['in-process', 'http', 'websocket', 'auto']
export type Road = 'in-process' | 'http' | 'websocket' | 'auto'

export function connect(
  road: Road,
  service: Service,
  options: Partial<LockClientOptions> = {},
): LockClient {
  const client = new LockClient(
    road === 'in-process'
      ? { ...options, service: service.engine }
      : { ...options, url: service.url, transport: road },
  )
  onTestFinished(() => client.close())
  return client
}
