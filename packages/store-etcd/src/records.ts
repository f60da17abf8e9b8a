import type { KeyValue } from './client/txn.ts'

/** The value of `k/<key>␀l`. Written once per grant, in the transaction that mints its token. */
export interface LockRecord {
  readonly ownerId: string
  readonly sessionId: string
  /** Names the try that wrote it, so that a try whose answer was lost can be recognised. */
  readonly attempt: string
  /** The token is this plus the record's revision. See `fencing-token.ts`. */
  readonly tokenOffset: string
  /** Milliseconds since the epoch, for people. */
  readonly acquiredAtMs: number
  /** The lease that it was granted with. */
  readonly ttlMs: number
}

/** The value of `k/<key>␀t`. */
export interface TtlRecord {
  readonly ttlMs: number
  /** Milliseconds since the epoch, for people. */
  readonly expiresAtMs: number
}

/** The value of `c/<sid>`. */
export interface SessionRecord {
  readonly ownerId: string
  readonly carrier: string
  readonly createdAtMs: number
}

/** The value of `s/<sid>`. */
export interface MarkerRecord {
  readonly carrier: string
  readonly ownerId: string
  readonly ttlMs: number
  /** Milliseconds since the epoch, for people. */
  readonly expiresAtMs: number
}

/** The value of `a/<id>`. */
export interface AuditRecord {
  readonly key: string
  readonly previousOwnerId: string
  readonly previousToken: string
  readonly tokenOffset: string
  readonly operator: string
  readonly reason: string
  readonly revokedAtMs: number
}

/** The value of `meta`. */
export interface MetaRecord {
  readonly clusterId: string
  /** Raised by every `advanceTokens`. */
  readonly epoch: number
  readonly tokenOffset: string
}

/** Values are JSON: they are read by people with `etcdctl` when something is wrong. */
export function encode(
  record: LockRecord | TtlRecord | SessionRecord | MarkerRecord | AuditRecord | MetaRecord,
): string {
  return JSON.stringify(record)
}

export function lockRecordOf(stored: KeyValue): LockRecord {
  return JSON.parse(stored.value) as LockRecord
}

export function ttlRecordOf(stored: KeyValue): TtlRecord {
  return JSON.parse(stored.value) as TtlRecord
}

export function sessionRecordOf(stored: KeyValue): SessionRecord {
  return JSON.parse(stored.value) as SessionRecord
}

export function markerRecordOf(stored: KeyValue): MarkerRecord {
  return JSON.parse(stored.value) as MarkerRecord
}

export function auditRecordOf(stored: KeyValue): AuditRecord {
  return JSON.parse(stored.value) as AuditRecord
}

export function metaRecordOf(stored: KeyValue): MetaRecord {
  return JSON.parse(stored.value) as MetaRecord
}
