import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Clock } from '@dlock/system'

/** One request to a system that has no memory. */
export interface Presentation {
  readonly url: URL
  readonly method: string
  /** `Host`, `Connection` and `Content-Length` are set here. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Uint8Array
}

/** Bounds, in whole milliseconds and bytes. */
export interface PresentationLimits {
  /** For name look-up, connect and TLS handshake. */
  readonly connectTimeoutMs: number
  /** From the connection's opening to the last byte of the reply. */
  readonly readTimeoutMs: number
  readonly maxReplyBytes: number
}

/**
 * What became of it. Only a connection that was never established proves that nothing was
 * presented; from then on, whatever is not a complete reply leaves the outcome unknown.
 */
export type Presented =
  | { readonly kind: 'not-presented'; readonly why: string }
  | { readonly kind: 'answered'; readonly reply: Reply }
  | { readonly kind: 'unknown'; readonly why: string }

/** A complete reply, whatever its status. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/**
 * Sends one request over one new connection, once. A pooled connection would blur the line: when
 * the other side closes it just as it is used again, nobody can tell whether the request arrived.
 * There is no second socket and no second try, whatever happens. Never rejects.
 */
export async function presentOnce(
  presentation: Presentation,
  limits: PresentationLimits,
  clock: Clock,
): Promise<Presented> {
  let socket: Socket
  try {
    socket = await open(presentation.url, limits.connectTimeoutMs, clock)
  } catch (error) {
    return { kind: 'not-presented', why: (error as Error).message }
  }
  try {
    return { kind: 'answered', reply: await converse(socket, presentation, limits, clock) }
  } catch (error) {
    return { kind: 'unknown', why: (error as Error).message }
  } finally {
    socket.destroy()
  }
}

function open(url: URL, timeoutMs: number, clock: Clock): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const secure = url.protocol === 'https:'
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = Number(url.port || (secure ? 443 : 80))
    const socket = secure
      ? connectTls({ host, port, servername: host })
      : connectPlain({ host, port })
    const timer = clock.setTimer(
      timeoutMs,
      () => socket.destroy(new Error(`no connection within ${timeoutMs} ms`)),
      { keepAlive: true },
    )
    const fail = (error: Error): void => {
      timer.cancel()
      reject(error)
    }
    socket.once('error', fail)
    socket.once('close', () => fail(new Error('the connection was closed while it was opened')))
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      timer.cancel()
      socket.removeAllListeners('close')
      socket.off('error', fail)
      resolve(socket)
    })
  })
}

function converse(
  socket: Socket,
  { url, method, headers, body }: Presentation,
  { readTimeoutMs, maxReplyBytes }: PresentationLimits,
  clock: Clock,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const req = httpRequest(url, {
      method,
      headers: {
        ...(headers as Record<string, string | string[]>),
        connection: 'close',
        'content-length': String(body.length),
      },
      createConnection: () => socket,
    })
    const timer = clock.setTimer(
      readTimeoutMs,
      () => req.destroy(new Error(`no complete reply within ${readTimeoutMs} ms`)),
      { keepAlive: true },
    )
    const settle = (act: () => void): void => {
      timer.cancel()
      act()
    }
    req.on('error', (error) => settle(() => reject(error)))
    let replying = false
    req.on('close', () => {
      // A reply that is being read reports its own end.
      if (!replying) settle(() => reject(new Error('the connection was closed without a reply')))
    })
    req.on('response', (res) => {
      replying = true
      read(res, maxReplyBytes).then(
        (reply) => settle(() => resolve(reply)),
        (error: unknown) => settle(() => reject(error as Error)),
      )
    })
    req.end(body)
  })
}

async function read(res: IncomingMessage, maxReplyBytes: number): Promise<Reply> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of res as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxReplyBytes) throw new Error(`a reply of more than ${maxReplyBytes} bytes`)
    chunks.push(chunk)
  }
  if (!res.complete) throw new Error('the reply was cut off')
  return { status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }
}
