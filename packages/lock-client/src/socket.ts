/** A WebSocket as the client needs it: text messages to and fro. The default is in `ws-socket.ts`. */
export interface Socket {
  /** Only once it is open. */
  send(text: string): void
  /** Asks the other side for a sign of life, which `heard` reports. */
  ping(): void
  /** Whether it keeps the process alive; true at first. */
  keepAlive(keep: boolean): void
  /** Says good-bye; `closed` follows when the other side has too. */
  close(): void
  /** Is closed at once. Idempotent. */
  terminate(): void
}

/** What a socket tells: that it opened, what arrived, and that it is gone. */
export interface SocketListener {
  opened(): void
  message(text: string): void
  /** Any sign of life at all. */
  heard(): void
  /** Once, and nothing after it: also when it never opened. @param why for people */
  closed(why: string): void
}

/** Begins to open a socket for the subprotocol of `@dlock/protocol`. Nothing is called before it returns. */
export type OpenSocket = (url: URL, listener: SocketListener) => Socket
