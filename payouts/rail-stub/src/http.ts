import { invalid, type Service } from '@dlock/messages'
import { Failure } from '@dlock/protocol'
import type { FastifyReply } from 'fastify'
import type { Rail, RailFaults, TransferRequest } from './rail.ts'

/** The rail's own interface, which is nobody's here to improve: no `/v1`, no key, no token. */
export function serveRail({ app }: Service, rail: Rail): void {
  app.post('/submit', async (request, reply) => {
    const answer = await rail.submit(transferRequest(request.body))
    switch (answer.kind) {
      case 'acked':
        return answer.twice ? sendTwice(reply, answer.transfer) : reply.send(answer.transfer)
      case 'declined':
        return reply.code(422).send({ declined: true })
      case 'failed':
        return reply.code(500).send({ error: 'something went wrong' })
      case 'lost':
        reply.raw.socket?.destroy()
        return reply.hijack()
    }
  })
  app.get('/transfers', (request) => {
    const { clientRef } = request.query as { clientRef?: unknown }
    if (typeof clientRef !== 'string')
      throw invalid([{ field: 'clientRef', message: 'is required' }])
    return { transfers: rail.transfers(clientRef) }
  })
  // For tests and experiments; a real rail has neither.
  app.get('/requests', () => ({ requests: rail.requests }))
  app.post('/faults', (request) => {
    const faults = request.body as Partial<RailFaults>
    for (const [name, value] of Object.entries(faults)) {
      const isRate = name.endsWith('Rate')
      const max = isRate ? 1 : 3_600_000
      if (!(name in rail.faults) || typeof value !== 'number' || !(value >= 0 && value <= max)) {
        throw invalid([{ field: name, message: `must be a known fault, from 0 to ${max}` }])
      }
    }
    rail.faults = { ...rail.faults, ...faults }
    return rail.faults
  })
}

function transferRequest(body: unknown): TransferRequest {
  const { clientRef, amountMinor, currency } = (body ?? {}) as Partial<TransferRequest>
  if (typeof clientRef !== 'string' || typeof currency !== 'string') {
    throw new Failure('VALIDATION_FAILED', 'clientRef and currency must be texts')
  }
  if (typeof amountMinor !== 'number' || !Number.isSafeInteger(amountMinor) || amountMinor < 1) {
    throw new Failure('VALIDATION_FAILED', 'amountMinor must be a whole number from 1')
  }
  return { clientRef, amountMinor, currency }
}

/** Two complete answers to one request, one after the other on the same connection. */
function sendTwice(reply: FastifyReply, body: object): FastifyReply {
  const text = JSON.stringify(body)
  const answer = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  reply.raw.socket?.end(answer + answer)
  return reply.hijack()
}
