import type { CapableStore, LockStore, SessionRegistry, StoreCapabilities } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'

/** What is tested: the two contracts, and whatever capabilities the store declares. */
export type TestedStore = LockStore & SessionRegistry & Partial<CapableStore>

/** `'waiting'`, `'transfer'`, … */
export type CapabilityName = keyof StoreCapabilities

/** How the kit gets at a kind of store. The kit knows nothing else about it. */
export interface StoreFixture {
  /**
   * What the store is expected to declare, no more and no less, so that a capability that got lost
   * fails instead of skipping its cases.
   */
  readonly capabilities: readonly CapabilityName[]
  /**
   * Whether cases may run at the same time: open namespaces do not disturb one another. It pays
   * where most of the time is waiting for leases to end. Default: one after another.
   */
  readonly sideBySide?: boolean
  /** A namespace that is empty and that nobody else uses. Nothing sweeps it. */
  open(): Promise<StoreNamespace>
}

/** One empty set of locks and sessions, and a store over it. */
export interface StoreNamespace {
  readonly store: TestedStore
  /** The clock whose monotonic readings the store's handles carry as their deadlines. */
  readonly clock: Clock
  /**
   * Another store over the same locks and sessions, as another process would have; the same one
   * where that makes no difference. Ends with `close`.
   */
  openReplica(): Promise<TestedStore>
  /** Ends this session behind the store's back, at once, and not by a call of the store. */
  killSession(sessionId: string): Promise<void>
  /** Lets at least `ms` pass, by the store's own clock: really, or by moving a clock by hand. */
  waitMs(ms: number): Promise<void>
  close(): Promise<void>
}

/** One rule, and how to see whether a store keeps it. */
export interface StoreCase {
  /** The rule. No two cases share a name. */
  readonly name: string
  /** The capabilities without which there is nothing to see. */
  readonly needs?: readonly CapabilityName[]
  /** Rejects when the store breaks the rule. Starts in an empty namespace. */
  run(given: StoreNamespace): Promise<void>
}
