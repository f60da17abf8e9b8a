import type { CapableStore, LockStore, SessionRegistry } from '@dlock/lock-api'
import type { Logger } from 'pino'
import { openEtcd } from './etcd.ts'
import { openPg } from './pg.ts'
import type { Configuration } from './settings.ts'

/** A store that is open, and how to close it. */
export interface OpenStore extends AsyncDisposable {
  readonly store: LockStore & SessionRegistry & CapableStore
  /** Where the locks are kept, for people. Holds no secret. */
  readonly keptIn: string
  /** Resolves, with the reason, when the store is gone for good. */
  readonly gone: Promise<string>
}

/** Every store that lockd knows, by its `lock.backend`. The only place that names them. */
export const stores: Readonly<
  Record<
    Configuration['backend'],
    (configuration: Configuration, log: Logger) => Promise<OpenStore>
  >
> = {
  pg: openPg,
  etcd: openEtcd,
}
