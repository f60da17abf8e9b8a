import {
  CONNECT_PATH,
  CONNECT_SUBPROTOCOL,
  type ErrorEnvelope,
  errorTable,
  type InputOf,
  type OperationName,
  type OutputOf,
  operations,
  type ServerFrame,
  toHttpRequest,
} from '@dlock/protocol'
import { expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { envelopeIn, type Served, send } from './serve.ts'

/** One way to call a server. The same tests run through every one of them. */
export interface Caller {
  call<Name extends OperationName>(
    name: Name,
    input: InputOf<Name>,
    ownerId?: string,
  ): Promise<OutputOf<Name>>
  /** The call must be refused. */
  refusal(name: OperationName, input: object, ownerId?: string): Promise<ErrorEnvelope>
}

export const callers = {
  HTTP: async (served: Served) =>
    callerOver((name, input, ownerId) => overHttp(served, name, input, ownerId)),
  'the multiplexed connection': async (served: Served) => {
    const connection = await connect(served)
    return callerOver((name, input, ownerId) => connection.ask(name, input, ownerId))
  },
} satisfies Record<string, (served: Served) => Promise<Caller>>

type Answer = { readonly out: unknown } | { readonly error: ErrorEnvelope }
type Ask = (name: OperationName, input: object, ownerId: string) => Promise<Answer>

function callerOver(ask: Ask): Caller {
  return {
    async call(name, input, ownerId = 'worker') {
      const answer = await ask(name, input, ownerId)
      expect(answer).not.toHaveProperty('error')
      const { out } = answer as { out: never }
      expect(operations[name].output.faults(out)).toEqual([])
      return out
    },
    async refusal(name, input, ownerId = 'worker') {
      const answer = await ask(name, input, ownerId)
      expect(answer).toHaveProperty('error')
      return (answer as { error: ErrorEnvelope }).error
    },
  }
}

async function overHttp(
  served: Served,
  name: OperationName,
  input: object,
  ownerId: string,
): Promise<Answer> {
  const operation = operations[name]
  const { method, path, headers, body } = toHttpRequest(operation as never, input)
  const reply = await send(served, {
    method,
    path,
    headers: { ...headers, 'X-Owner-Id': ownerId },
    ...(body !== undefined && { body }),
  })
  if (reply.status !== operation.status) {
    const error = envelopeIn(reply)
    expect(reply.status).toBe(errorTable[error.code].status)
    return { error }
  }
  expect(reply.text === '').toBe(operation.status === 204)
  return { out: reply.text === '' ? {} : JSON.parse(reply.text) }
}

export interface TestConnection {
  readonly socket: WebSocket
  /** Messages received so far, each an array of frames. */
  readonly messages: ServerFrame[][]
  readonly closed: Promise<{ code: number; reason: string }>
  ask(name: OperationName, input: object, ownerId?: string): Promise<Answer>
  /** Sends one message as it is. */
  sendRaw(message: unknown): void
  answerTo(id: number): Promise<ServerFrame>
  nextId(): number
}

export async function connect(served: Served): Promise<TestConnection> {
  const socket = new WebSocket(`ws://127.0.0.1:${served.port}${CONNECT_PATH}`, CONNECT_SUBPROTOCOL)
  onTestFinished(() => socket.terminate())
  const messages: ServerFrame[][] = []
  const waiting = new Map<number, (frame: ServerFrame) => void>()
  socket.on('message', (data: Buffer) => {
    const frames = JSON.parse(data.toString()) as ServerFrame[]
    messages.push(frames)
    for (const frame of frames) waiting.get(frame.id)?.(frame)
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  let lastId = 0
  const connection: TestConnection = {
    socket,
    messages,
    closed,
    nextId: () => ++lastId,
    sendRaw: (message) => {
      socket.send(typeof message === 'string' ? message : JSON.stringify(message))
    },
    answerTo: (id) => new Promise((resolve) => waiting.set(id, resolve)),
    async ask(op, input, owner = 'worker') {
      const id = ++lastId
      const answer = connection.answerTo(id)
      connection.sendRaw([{ id, op, owner, in: input }])
      const { id: _, ...rest } = await answer
      return rest as Answer
    },
  }
  return connection
}

export async function openSession(caller: Caller, ownerId = 'worker'): Promise<string> {
  return (await caller.call('openSession', { ownerId }, ownerId)).sessionId
}
