import type { Clock } from '@dlock/system'
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js'
import { EtcdError } from './etcd-error.ts'
import { type MethodName, methods } from './wire.ts'

/**
 * - No automatic retry: a write that failed may have been applied, and only the store knows how to
 *   find out.
 * - Pings at 6 s find a member that froze with its connections open. Faster than 5 s and etcd
 *   answers with `too_many_pings` and hangs up.
 */
const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.keepalive_time_ms': 6_000,
  'grpc.keepalive_timeout_ms': 1_500,
  'grpc.keepalive_permit_without_calls': 0,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.use_local_subchannel_pool': 1,
}

/** One member of the cluster, on a channel of its own. */
export class Endpoint {
  readonly address: string
  readonly #client: Client
  readonly #clock: Clock

  constructor(
    address: string,
    credentials: ChannelCredentials,
    options: ChannelOptions,
    clock: Clock,
  ) {
    this.address = address
    this.#client = new Client(address, credentials, { ...CHANNEL_OPTIONS, ...options })
    this.#clock = clock
  }

  /**
   * One try, answered within `withinMs` or given up.
   *
   * @throws EtcdError
   */
  unary(
    name: MethodName,
    request: object,
    token: string | undefined,
    withinMs: number,
  ): Promise<object> {
    const { path, requestSerialize, responseDeserialize } = methods[name]
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadataOf(token),
        (error: ServiceError | null, answer?: object) => {
          timer.cancel()
          if (error !== null) reject(EtcdError.of(error))
          else resolve(answer ?? {})
        },
      )
      const timer = this.#clock.setTimer(
        withinMs,
        () => {
          reject(new EtcdError('unknown', `${this.address} did not answer within ${withinMs} ms`))
          call.cancel()
        },
        { keepAlive: true },
      )
    })
  }

  stream(name: MethodName, token: string | undefined): ClientDuplexStream<object, object> {
    const { path, requestSerialize, responseDeserialize } = methods[name]
    return this.#client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadataOf(token),
    )
  }

  close(): void {
    this.#client.close()
  }
}

/** `hasleader`: a member that lost its leader says so at once, instead of going silent. */
function metadataOf(token: string | undefined): Metadata {
  const metadata = new Metadata()
  metadata.set('hasleader', 'true')
  if (token !== undefined) metadata.set('token', token)
  return metadata
}
