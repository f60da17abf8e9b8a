import type { Clock } from '@dlock/system'
import { AutoChannel } from './auto.ts'
import { HttpChannel } from './http.ts'
import { type HttpClient, HttpConnections } from './http-connections.ts'
import type { OpenSocket } from './socket.ts'
import type { Transport } from './transport.ts'
import { WebSocketChannel } from './websocket.ts'
import { WireTransport } from './wire.ts'
import { openWsSocket } from './ws-socket.ts'

/** A server, and the road to it. */
export interface RemoteOptions {
  /** `http:` or `https:`, as `http://127.0.0.1:7400`; a path is put in front of every call's. */
  readonly url: string | URL
  /**
   * `'auto'`, the default: one multiplexed connection for the whole client, and plain HTTP for a
   * while when that cannot be made. `'websocket'` or `'http'`: that one only.
   */
  readonly transport?: 'auto' | 'websocket' | 'http'
  /** How requests are sent. Default: kept connections of Node's own HTTP client. */
  readonly httpClient?: HttpClient
  /** How the multiplexed connection is opened. Default: the `ws` package. */
  readonly openSocket?: OpenSocket
}

/** @throws TypeError, RangeError that name the option, its value and its range */
export function remoteTransport(options: RemoteOptions, clock: Clock): Transport {
  const { transport = 'auto', openSocket = openWsSocket } = options
  const base = checkUrl(options.url)
  const http = new HttpChannel(options.httpClient ?? new HttpConnections(base, clock), clock)
  const webSocket = new WebSocketChannel(base, openSocket, clock)
  switch (transport) {
    case 'auto':
      return new WireTransport(new AutoChannel(webSocket, http, clock))
    case 'websocket':
      return new WireTransport(webSocket)
    case 'http':
      return new WireTransport(http)
    default:
      throw new RangeError(
        `transport must be "auto", "websocket" or "http", got ${JSON.stringify(transport)}`,
      )
  }
}

function checkUrl(text: string | URL): URL {
  if (!URL.canParse(String(text))) {
    throw new TypeError(`url must be a URL, got ${JSON.stringify(text)}`)
  }
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new RangeError(`url must begin with http: or https:, got ${JSON.stringify(url.href)}`)
  }
  return url
}
