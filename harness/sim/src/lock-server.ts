import { LockEngine } from '@dlock/engine'
import { Chance } from './chance.ts'
import type { Journal } from './journal.ts'
import type { LockDatabase } from './lock-database.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import { StoreLink } from './store-link.ts'

export interface LockServerParts {
  readonly machine: Machine
  readonly database: LockDatabase
  readonly network: Network
  readonly journal: Journal
  readonly seed: number
  readonly safetyMargin: number
}

/** A replica of the service: the shipped engine, over the database that it reaches by messages. */
export class LockServer {
  readonly machine: Machine
  readonly #parts: LockServerParts
  #engine: LockEngine

  constructor(parts: LockServerParts) {
    this.machine = parts.machine
    this.#parts = parts
    this.#engine = this.#begin()
  }

  get engine(): LockEngine {
    return this.#engine
  }

  /** A new process, which has seen nothing. */
  restart(): void {
    this.machine.start()
    this.#engine = this.#begin()
  }

  #begin(): LockEngine {
    const { machine, database, network, journal, seed, safetyMargin } = this.#parts
    const clock = machine.clock()
    const engine = new LockEngine({
      store: new StoreLink(machine, database, network, clock),
      clock,
      random: new Chance(seed, `${machine.name} ${machine.life}`),
      safetyMargin,
      maxTtlMs: 60_000,
    })
    engine.onEvent((event) => {
      if (event.type === 'token_regression') journal.count('the engine stopped: token regression')
    })
    engine.start().catch((error: unknown) => {
      journal.write(`${machine.name} could not start: ${String(error)}`)
    })
    return engine
  }
}
