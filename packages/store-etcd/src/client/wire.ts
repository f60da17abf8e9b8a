import { fileURLToPath } from 'node:url'
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

/**
 * etcd's messages as this package sends and reads them. A 64-bit number is a decimal string on this
 * side of the wire: lease ids and revisions exceed what a JavaScript number holds exactly.
 */
export interface Header {
  readonly clusterId: string
  readonly revision: string
}

export interface WireKeyValue {
  readonly key: Buffer
  readonly value: Buffer
  readonly createRevision: string
  readonly modRevision: string
  readonly lease: string
}

export interface WireRange {
  readonly kvs: readonly WireKeyValue[]
  readonly more: boolean
  readonly count: string
}

export interface WireTxnResponse {
  readonly header: Header | null
  readonly succeeded: boolean
  readonly responses: readonly WireResponse[]
}

export interface WireResponse {
  readonly responseRange?: WireRange
  readonly responseTxn?: WireTxnResponse
}

export interface WireEvent {
  readonly type: 'PUT' | 'DELETE'
  readonly kv: WireKeyValue
  readonly prevKv: WireKeyValue | null
}

export interface WireWatchResponse {
  readonly header: Header | null
  readonly created: boolean
  readonly canceled: boolean
  readonly compactRevision: string
  readonly cancelReason: string
  readonly events: readonly WireEvent[]
}

/** One call of the protocol: its path, and how its messages become bytes. */
export type Method = MethodDefinition<object, object>

const file = fileURLToPath(new URL('../../proto/etcd.proto', import.meta.url))
const loaded = loadSync(file, { longs: String, enums: String, defaults: true, oneofs: true })

function method(service: string, name: string): Method {
  const definition = (loaded[`etcdserverpb.${service}`] as ServiceDefinition)[name]
  if (definition === undefined) throw new Error(`etcd.proto has no ${service}.${name}`)
  return definition
}

export const methods: Readonly<Record<MethodName, Method>> = {
  range: method('KV', 'Range'),
  txn: method('KV', 'Txn'),
  watch: method('Watch', 'Watch'),
  leaseGrant: method('Lease', 'LeaseGrant'),
  leaseRevoke: method('Lease', 'LeaseRevoke'),
  leaseKeepAlive: method('Lease', 'LeaseKeepAlive'),
  status: method('Maintenance', 'Status'),
  authenticate: method('Auth', 'Authenticate'),
}

export type MethodName =
  | 'range'
  | 'txn'
  | 'watch'
  | 'leaseGrant'
  | 'leaseRevoke'
  | 'leaseKeepAlive'
  | 'status'
  | 'authenticate'
