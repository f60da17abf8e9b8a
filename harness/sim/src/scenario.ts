import { Chance } from './chance.ts'
import type { Skew } from './machine.ts'
import type { Weather } from './network.ts'

/** What goes wrong, when, and for how long. Whatever is broken is mended after `ms`. */
export type Fault = { readonly atMs: number; readonly ms: number } & (
  | { readonly kind: 'pause' | 'suspend' | 'crash'; readonly machine: string }
  | {
      readonly kind: 'jump'
      readonly machine: string
      readonly clock: 'monotonic' | 'boot' | 'wall'
    }
  | { readonly kind: 'partition'; readonly from: string; readonly to: string }
  | { readonly kind: 'storm'; readonly weather: Weather }
  /** Fail-over that loses the last `ms`, or an old backup, by the operator's procedure. */
  | { readonly kind: 'restore' }
  | { readonly kind: 'revoke'; readonly key: string; readonly isPushed: boolean }
)

/** The settings of a run that no fault changes. */
export interface Knobs {
  readonly servers: number
  readonly workers: number
  /** Tasks of each worker, which share its session. */
  readonly tasks: number
  readonly keys: readonly string[]
  readonly ttlsMs: readonly number[]
  readonly sessionTtlMs: number
  readonly safetyMargin: number
  readonly idleMs: number
  readonly workMs: number
  readonly weather: Weather
  readonly skews: Readonly<Record<string, Skew>>
  /** Faults begin before this; then everything is mended, and work must go on. */
  readonly durationMs: number
  readonly settleMs: number
}

/** A run, whole: everything that decides it. */
export interface Scenario {
  readonly seed: number
  readonly knobs: Knobs
  readonly faults: readonly Fault[]
}

export const DATABASE = 'db'
export const RESOURCE = 'resource'
export const OPERATOR = 'operator'

export function serverName(ordinal: number): string {
  return `lockd${ordinal}`
}

export function workerName(ordinal: number): string {
  return `worker${ordinal}`
}

/** Everything about a run, from one number. */
export function scenarioOf(seed: number): Scenario {
  const chance = new Chance(seed, 'scenario')
  const knobs = knobsFrom(chance)
  const count = chance.whole(0, 24)
  const faults = Array.from({ length: count }, () => faultFrom(chance, knobs))
  return { seed, knobs, faults: faults.sort((a, b) => a.atMs - b.atMs) }
}

export function machinesOf({ servers, workers }: Knobs): readonly string[] {
  return [
    DATABASE,
    RESOURCE,
    OPERATOR,
    ...Array.from({ length: servers }, (_, i) => serverName(i + 1)),
    ...Array.from({ length: workers }, (_, i) => workerName(i + 1)),
  ]
}

function knobsFrom(chance: Chance): Knobs {
  const counts = { servers: chance.whole(1, 3), workers: chance.whole(2, 4) }
  const knobs = {
    ...counts,
    tasks: chance.whole(1, 3),
    keys: ['a', 'b', 'c'].slice(0, chance.whole(1, 3)),
    ttlsMs: Array.from({ length: chance.whole(1, 3) }, () => chance.whole(200, 4_000)),
    sessionTtlMs: chance.whole(1_000, 6_000),
    safetyMargin: chance.pick([0.2, 0.3, 0.5]),
    idleMs: chance.whole(5, 300),
    workMs: chance.whole(1, 400),
    weather: weatherFrom(chance, 0.05),
    durationMs: chance.whole(6_000, 16_000),
    settleMs: 15_000,
    skews: {},
  }
  const skews = machinesOf(knobs).map((name) => [name, skewFrom(chance)] as const)
  return { ...knobs, skews: Object.fromEntries(skews) }
}

function weatherFrom(chance: Chance, worst: number): Weather {
  return {
    delayMs: chance.between(0.5, 20),
    loss: chance.happens(0.5) ? chance.between(0, worst) : 0,
    duplication: chance.happens(0.5) ? chance.between(0, worst) : 0,
    slowness: chance.happens(0.5) ? chance.between(0, worst) : 0,
    slowMs: chance.between(50, 3_000),
  }
}

/** Rates apart by less than the smallest margin; everything else as it likes. */
function skewFrom(chance: Chance): Skew {
  return {
    ratePpm: chance.whole(-30_000, 30_000),
    sinceBootNanos: chance.whole(1, 1_000_000) * 1_000_003,
    wallOffMs: chance.whole(-86_400_000, 86_400_000),
  }
}

function faultFrom(chance: Chance, knobs: Knobs): Fault {
  const at = { atMs: chance.between(500, knobs.durationMs), ms: chance.between(10, 5_000) }
  const machine = chance.pick(machinesOf(knobs))
  const kind = chance.pick([
    'pause',
    'pause',
    'pause',
    'suspend',
    'crash',
    'crash',
    'jump',
    'partition',
    'partition',
    'storm',
    'revoke',
    'restore',
  ] as const)
  switch (kind) {
    case 'pause':
    case 'suspend': {
      // The paused holder is what all of this is about.
      const worker = workerName(chance.whole(1, knobs.workers))
      return { ...at, kind, machine: chance.happens(0.6) ? worker : machine }
    }
    case 'crash':
      return { ...at, kind, machine }
    case 'jump': {
      const clock = chance.pick(['monotonic', 'boot', 'wall'] as const)
      const forward = clock !== 'wall' || chance.happens(0.5)
      return { ...at, ms: forward ? at.ms : -at.ms, kind, machine, clock }
    }
    case 'partition':
      return { ...at, kind, from: machine, to: chance.pick(machinesOf(knobs)) }
    case 'storm':
      return { ...at, kind, weather: weatherFrom(chance, 0.5) }
    case 'revoke':
      return { ...at, kind, key: chance.pick(knobs.keys), isPushed: chance.happens(0.7) }
    case 'restore':
      return { ...at, kind }
  }
}
