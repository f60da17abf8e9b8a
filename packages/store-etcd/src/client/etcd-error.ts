import { type ServiceError, status } from '@grpc/grpc-js'

/**
 * Why a call failed, by what it says about the write that it carried.
 *
 * Definite, nothing was applied: `lease-gone` (a put named a lease that no longer exists),
 * `no-leader`, `exhausted` (no space, or too many requests), `unauthenticated`, `denied`,
 * `invalid`. Everything else is `unknown`: **the write may have been applied, or may still be**,
 * even after a linearizable read has said that it was not.
 */
export type EtcdErrorKind =
  | 'lease-gone'
  | 'no-leader'
  | 'exhausted'
  | 'unauthenticated'
  | 'denied'
  | 'invalid'
  | 'unknown'

export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly kind: EtcdErrorKind

  constructor(kind: EtcdErrorKind, message: string) {
    super(message)
    this.kind = kind
  }

  /** What a failed gRPC call says. */
  static of(error: ServiceError): EtcdError {
    return new EtcdError(kindOf(error), error.details === '' ? error.message : error.details)
  }
}

/** Refusals that say all by their code. */
const KIND_OF_CODE: ReadonlyMap<status, EtcdErrorKind> = new Map([
  [status.NOT_FOUND, 'lease-gone'],
  [status.RESOURCE_EXHAUSTED, 'exhausted'],
  [status.UNAUTHENTICATED, 'unauthenticated'],
  [status.PERMISSION_DENIED, 'denied'],
  [status.FAILED_PRECONDITION, 'invalid'],
])

function kindOf({ code, details }: ServiceError): EtcdErrorKind {
  if (code === status.INVALID_ARGUMENT) {
    // A call without a token, or with one from before the users changed: sign in and try again.
    return /user name is empty|auth store is old|invalid auth token/.test(details)
      ? 'unauthenticated'
      : 'invalid'
  }
  // Only this refusal comes before the proposal; "leader changed" and the like come after it.
  if (code === status.UNAVAILABLE && details === 'etcdserver: no leader') return 'no-leader'
  return KIND_OF_CODE.get(code) ?? 'unknown'
}
