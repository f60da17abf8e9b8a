import type { LockEngine } from '@dlock/engine'
import { CONNECT_PATH, EVENTS_PATH } from '@dlock/protocol'
import type { FastifyInstance } from 'fastify'
import { docsPage } from './docs-page.ts'
import type { EventStream } from './event-stream.ts'
import { shuttingDown } from './handlers.ts'
import { sendJson } from './http-server.ts'
import { type Authenticate, identified } from './identity.ts'
import type { LockMetrics } from './lock-metrics.ts'
import { openApiDocument } from './openapi.ts'
import { upgradeRequired } from './upgrade.ts'

export interface SideRouteParts {
  readonly engine: LockEngine
  readonly metrics: LockMetrics
  readonly events: EventStream
  readonly authenticate: Authenticate
  isClosing(): boolean
}

/** What is served beside the calls: events, health, metrics and the description of it all. */
export function serveSideRoutes(app: FastifyInstance, parts: SideRouteParts): void {
  const document = openApiDocument()
  const page = docsPage(document)

  app.get(EVENTS_PATH, async (request, reply) => {
    await identified(parts.authenticate, request.raw)
    parts.events.open(reply.raw)
    return reply.hijack()
  })

  app.get(CONNECT_PATH, async (_, reply) => {
    reply.header('Upgrade', 'websocket')
    throw upgradeRequired()
  })

  // Touches nothing outside the process: a store that is down is no reason to restart this.
  app.get('/livez', async (_, reply) => sendJson({ status: 'alive' }, reply))

  app.get('/readyz', async (_, reply) => {
    if (parts.isClosing()) throw shuttingDown()
    await parts.engine.checkHealth()
    return sendJson({ status: 'ready' }, reply)
  })

  app.get('/metrics', async (_, reply) =>
    reply.type(parts.metrics.contentType).send(await parts.metrics.expose()),
  )

  app.get('/openapi.json', async (_, reply) => sendJson(document, reply))

  app.get('/docs', async (_, reply) => {
    reply.header('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'")
    return reply.type('text/html; charset=utf-8').send(page)
  })
}
