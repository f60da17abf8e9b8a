import type { Socket as TcpSocket } from 'node:net'
import { CONNECT_SUBPROTOCOL, MAX_MESSAGE_BYTES } from '@dlock/protocol'
import { type RawData, WebSocket } from 'ws'
import type { Socket, SocketListener } from './socket.ts'

/** A socket of the `ws` package. */
export function openWsSocket(url: URL, listener: SocketListener): Socket {
  const socket = new WebSocket(url, CONNECT_SUBPROTOCOL, {
    // Frames are short and many: compressing them costs more than it saves.
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  })
  let why: string | undefined
  let tcp: TcpSocket | undefined
  socket.on('upgrade', (response) => {
    tcp = response.socket
  })
  socket.on('unexpected-response', (_, response) => {
    why ??= `the server answered the upgrade with HTTP ${response.statusCode}`
    socket.terminate()
  })
  socket.on('open', () => listener.opened())
  socket.on('message', (data: RawData) => {
    listener.heard()
    listener.message((data as Buffer).toString())
  })
  socket.on('ping', () => listener.heard())
  socket.on('pong', () => listener.heard())
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // 'close' follows. The first error is the cause; what terminating adds to it is not.
    why ??= error.code ?? error.message
  })
  socket.on('close', () => listener.closed(why ?? 'it was closed'))
  return {
    send: (text) => socket.send(text),
    ping: () => socket.ping(),
    keepAlive: (keep) => void (keep ? tcp?.ref() : tcp?.unref()),
    close: () => socket.close(),
    terminate: () => socket.terminate(),
  }
}
