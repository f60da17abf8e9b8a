import type { CallFrame, ClientFrame } from '@dlock/protocol'
import type { OpenSocket, SocketListener } from '../src/index.ts'

/** A WebSocket whose other side is the test. */
export class ScriptedSocket {
  readonly url: URL
  readonly listener: SocketListener
  /** Each a message of frames. */
  readonly messages: ClientFrame[][] = []
  pings = 0
  keepsAlive = true
  isClosed = false

  constructor(url: URL, listener: SocketListener) {
    this.url = url
    this.listener = listener
  }

  /** What opens them, and those that were opened. */
  static opener(): { open: OpenSocket; sockets: ScriptedSocket[] } {
    const sockets: ScriptedSocket[] = []
    const open: OpenSocket = (url, listener) => {
      const socket = new ScriptedSocket(url, listener)
      sockets.push(socket)
      return {
        send: (text) => void socket.messages.push(JSON.parse(text) as ClientFrame[]),
        ping: () => void socket.pings++,
        keepAlive: (keep) => {
          socket.keepsAlive = keep
        },
        close: () => socket.drop('closed'),
        terminate: () => socket.drop('terminated'),
      }
    }
    return { open, sockets }
  }

  get frames(): ClientFrame[] {
    return this.messages.flat()
  }

  /** The calls that were sent and are of that name. */
  calls(op: string): CallFrame[] {
    return this.frames.filter((frame): frame is CallFrame => 'op' in frame && frame.op === op)
  }

  say(...frames: object[]): void {
    this.listener.heard()
    this.listener.message(JSON.stringify(frames))
  }

  drop(why: string): void {
    if (this.isClosed) return
    this.isClosed = true
    this.listener.closed(why)
  }
}
