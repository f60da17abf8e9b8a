import { ContentionError, LockError, NotLeaderError } from '@dlock/lock-api'
import { EtcdError, type EtcdErrorKind } from './client/etcd-error.ts'

/** What each kind of failure is to a caller: never lost, never held, and never etcd's own error. */
const TRANSLATION: Readonly<Record<EtcdErrorKind, (why: string) => LockError>> = {
  'lease-gone': (why) =>
    new ContentionError(`a lease ended while it was being used; nothing was written: ${why}`),
  'no-leader': (why) => new NotLeaderError(`etcd has no leader; nothing was written: ${why}`),
  exhausted: (why) => new ContentionError(`etcd takes no writes; nothing was written: ${why}`),
  unauthenticated: (why) => new ContentionError(`etcd refused the user: ${why}`),
  denied: (why) => new ContentionError(`etcd denied access to the namespace: ${why}`),
  invalid: (why) => new ContentionError(`etcd refused the request: ${why}`),
  unknown: (why) => new ContentionError(`etcd gave no answer; a write may have happened: ${why}`),
}

/** @returns the contract's error for whatever a verb threw; a caller's bug stays what it is */
export function translateError(error: unknown): unknown {
  return error instanceof EtcdError ? TRANSLATION[error.kind](error.message) : error
}
