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

function kindOf(error: ServiceError): EtcdErrorKind {
  switch (error.code) {
    case status.NOT_FOUND:
      return 'lease-gone'
    case status.RESOURCE_EXHAUSTED:
      return 'exhausted'
    case status.UNAUTHENTICATED:
      return 'unauthenticated'
    case status.PERMISSION_DENIED:
      return 'denied'
    case status.FAILED_PRECONDITION:
      return 'invalid'
    case status.INVALID_ARGUMENT:
      // A call without a token, or with one from before the users changed: sign in and try again.
      return /user name is empty|auth store is old|invalid auth token/.test(error.details)
        ? 'unauthenticated'
        : 'invalid'
    case status.UNAVAILABLE:
      // Only this refusal comes before the proposal; "leader changed" and the like come after it.
      return error.details === 'etcdserver: no leader' ? 'no-leader' : 'unknown'
    default:
      return 'unknown'
  }
}
