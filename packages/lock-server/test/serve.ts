import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { LockEngine } from '@dlock/engine'
import type { LockStore, SessionRegistry } from '@dlock/lock-api'
import { type ErrorEnvelope, errorEnvelope } from '@dlock/protocol'
import { MemoryStore } from '@dlock/store-memory'
import { expect, onTestFinished } from 'vitest'
import { createLockServer, createLog, LockMetrics, type LockServerOptions } from '../src/index.ts'

export interface Served {
  readonly url: string
  readonly port: number
  readonly engine: LockEngine
  readonly metrics: LockMetrics
  /** The log so far. */
  readonly lines: Record<string, unknown>[]
  close(options?: { readonly withinMs?: number }): Promise<void>
}

export interface ServeOptions extends Omit<Partial<LockServerOptions>, 'engine' | 'metrics'> {
  readonly store?: LockStore & SessionRegistry
  readonly maxWaiters?: number
}

/** A server on a free port, over a real engine, gone when the test is over. */
export async function serve(options: ServeOptions = {}): Promise<Served> {
  const { store = new MemoryStore(), maxWaiters, ...rest } = options
  const metrics = new LockMetrics(store.backendId())
  const engine = new LockEngine({
    store,
    meter: metrics,
    maxWaitMs: 30_000,
    ...(maxWaiters !== undefined && { maxWaiters }),
  })
  await engine.start()
  const lines: Record<string, unknown>[] = []
  const stream = { write: (line: string) => void lines.push(JSON.parse(line) as never) }
  const log = createLog({ level: 'trace', stream })
  const server = createLockServer({ engine, metrics, log, ...rest })
  const { url, port } = await server.listen({ port: 0 })
  onTestFinished(async () => {
    await server.close({ withinMs: 0 })
    await engine.close()
  })
  return { url, port, engine, metrics, lines, close: (how) => server.close(how) }
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Sent {
  readonly method?: string
  /** Verbatim: no URL parser touches it. */
  readonly path: string
  readonly headers?: Record<string, string | string[]>
  readonly body?: string | Buffer | undefined
}

export function send({ port }: { readonly port: number }, sent: Sent): Promise<Reply> {
  const { method = 'GET', path } = sent
  const headers = { ...sent.headers }
  // As bytes: with a text, Node would spell the headers in the text's encoding too.
  const body = sent.body === undefined ? undefined : Buffer.from(sent.body)
  if (body !== undefined) headers['Content-Length'] = String(body.length)
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, headers, agent: false }
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      })
      response.on('error', reject)
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** The envelope that a refused request must have been answered with. */
export function envelopeIn(reply: Reply): ErrorEnvelope {
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8')
  const envelope: unknown = JSON.parse(reply.text)
  expect(errorEnvelope.faults(envelope)).toEqual([])
  expect(reply.text).not.toMatch(/\bat .+:\d+:\d+|node_modules|\.ts\b/)
  return envelope as ErrorEnvelope
}

/** Waits until `read` gives what is expected. The bound is for a test that hangs, no expectation. */
export function eventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read, { timeout: 30_000, interval: 5 })
}
