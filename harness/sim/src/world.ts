import type { Breakage } from './broken-builds.ts'
import { Chance } from './chance.ts'
import { GuardedResource } from './guarded-resource.ts'
import { Journal } from './journal.ts'
import { LockDatabase } from './lock-database.ts'
import { LockServer } from './lock-server.ts'
import { Machine } from './machine.ts'
import { Network } from './network.ts'
import {
  DATABASE,
  machinesOf,
  OPERATOR,
  RESOURCE,
  type Scenario,
  serverName,
  workerName,
} from './scenario.ts'
import { VirtualTime } from './virtual-time.ts'
import { type Beliefs, Worker } from './worker.ts'

/** Something that can be killed and comes back. */
export interface Restartable {
  readonly machine: Machine
  restart(): void
}

/** Everything that there is in a run, standing and running. */
export class World {
  readonly time: VirtualTime = new VirtualTime()
  readonly journal: Journal
  readonly network: Network
  readonly database: LockDatabase
  readonly servers: readonly LockServer[]
  readonly resource: GuardedResource
  readonly operator: Machine
  readonly #machines: ReadonlyMap<string, Machine>
  readonly #restartable = new Map<string, Restartable>()

  constructor(scenario: Scenario, breakage: Breakage, listener?: (line: string) => void) {
    const { seed, knobs } = scenario
    const journal = new Journal(this.time, listener)
    this.journal = journal
    this.network = new Network(this.time, new Chance(seed, 'network'), journal, knobs.weather)
    this.#machines = new Map(
      machinesOf(knobs).map((name) => [name, this.#machine(name, scenario)] as const),
    )
    const { network } = this
    const shared = { network, journal, seed, breakage }
    this.operator = this.machine(OPERATOR)
    this.database = new LockDatabase({ ...shared, machine: this.machine(DATABASE) })
    this.resource = new GuardedResource(this.machine(RESOURCE), journal, breakage)
    const parts = { ...shared, database: this.database, resource: this.resource }
    const { safetyMargin } = knobs
    this.servers = named(knobs.servers, serverName).map(
      (name) => new LockServer({ ...parts, machine: this.machine(name), safetyMargin }),
    )
    const beliefs: Beliefs = new Map()
    const handedOut = new Set<string>()
    const workers = named(knobs.workers, workerName).map((name) => {
      const machine = this.machine(name)
      return new Worker({ ...parts, machine, servers: this.servers, knobs }, beliefs, handedOut)
    })
    const all = [this.database, this.resource, ...this.servers, ...workers]
    for (const each of all) this.#restartable.set(each.machine.name, each)
  }

  machine(name: string): Machine {
    const machine = this.#machines.get(name)
    if (machine === undefined) throw new RangeError(`there is no machine ${name}`)
    return machine
  }

  /** The process on a machine; the operator is a person, and is not killed. */
  process(name: string): Restartable | undefined {
    return this.#restartable.get(name)
  }

  #machine(name: string, { seed, knobs }: Scenario): Machine {
    const skew = knobs.skews[name]
    if (skew === undefined) throw new RangeError(`the clocks of ${name} are missing`)
    return new Machine(name, this.time, new Chance(seed, `machine ${name}`), skew)
  }
}

function named(count: number, name: (ordinal: number) => string): string[] {
  return Array.from({ length: count }, (_, i) => name(i + 1))
}
