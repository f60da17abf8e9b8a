/** A load: who wants which keys, for how long. */
export interface Profile {
  readonly what: string
  readonly clients: number
  /** The key that a client wants next; `chance` is uniform in [0, 1). */
  readonly key: (client: number, chance: number) => string
  readonly ttlMs: number
  readonly maxWaitMs: number
  /** How long a critical section takes, beside its write and its check. */
  readonly holdMs: number
  /** Explicit renewals in each critical section, spread over `holdMs`. The SDK renews beside them. */
  readonly renewals: number
  /** A new session after so many critical sections, whose last lock ends with it; 0 for never. */
  readonly turnsPerSession: number
}

const brief = { ttlMs: 10_000, maxWaitMs: 0, holdMs: 0, renewals: 0, turnsPerSession: 0 }

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  uncontended: {
    ...brief,
    what: '8 clients, each with a key of its own',
    clients: 8,
    key: (client) => `uncontended:${client}`,
  },
  light: {
    ...brief,
    what: '16 clients, 64 keys, seldom two for one',
    clients: 16,
    key: (_, chance) => `light:${Math.floor(chance * 64)}`,
    maxWaitMs: 5_000,
  },
  hot: {
    ...brief,
    what: '200 clients wait for one key',
    clients: 200,
    key: () => 'hot',
    maxWaitMs: 30_000,
  },
  long: {
    ...brief,
    what: '8 clients, 4 keys, held for longer than a lease with renewals',
    clients: 8,
    key: (client) => `long:${client % 4}`,
    ttlMs: 1_000,
    maxWaitMs: 30_000,
    holdMs: 1_500,
    renewals: 5,
  },
  churn: {
    ...brief,
    what: '16 clients, 16 keys, a new session every other lock',
    clients: 16,
    key: (_, chance) => `churn:${Math.floor(chance * 16)}`,
    maxWaitMs: 5_000,
    turnsPerSession: 2,
  },
}

export type ProfileName = 'uncontended' | 'light' | 'hot' | 'long' | 'churn'
