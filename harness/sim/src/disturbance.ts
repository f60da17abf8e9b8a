import type { Breakage } from './broken-builds.ts'
import type { Fault, Knobs } from './scenario.ts'
import type { World } from './world.ts'

/** How often a backup is taken, in ms of true time. */
const BACK_UP_EVERY_MS = 100

/** Does to a world what its scenario says, and mends it again. */
export class Disturbance {
  readonly #world: World
  readonly #knobs: Knobs
  readonly #breakage: Breakage
  #isRestoring = false
  #storms = 0

  constructor(world: World, knobs: Knobs, breakage: Breakage) {
    this.#world = world
    this.#knobs = knobs
    this.#breakage = breakage
  }

  /** Plans all of `faults`, and the backups that a restore can go back to. */
  plan(faults: readonly Fault[]): void {
    const { time } = this.#world
    for (const fault of faults) time.after(fault.atMs, () => this.#begin(fault))
    const restores = faults.some(({ kind }) => kind === 'restore')
    if (restores) this.#backUp()
  }

  #backUp(): void {
    const { time, database } = this.#world
    if (database.machine.isUp) database.backUp(time.nowNanos)
    if (time.nowNanos < this.#knobs.durationMs * 1_000_000) {
      time.after(BACK_UP_EVERY_MS, () => this.#backUp())
    }
  }

  #begin(fault: Fault): void {
    const { journal, network } = this.#world
    journal.count(`fault ${fault.kind}`, describe(fault))
    switch (fault.kind) {
      case 'pause':
        this.#pause(fault.machine, fault.ms)
        break
      case 'suspend':
        this.#suspend(fault.machine, fault.ms)
        break
      case 'crash':
        this.#crash(fault.machine, fault.ms)
        break
      case 'jump':
        this.#world.machine(fault.machine).jump(fault.clock, fault.ms)
        break
      case 'partition':
        network.cut(fault.from, fault.to)
        this.#mend(fault.ms, () => network.mend(fault.from, fault.to))
        break
      case 'storm':
        network.weather = fault.weather
        this.#storms += 1
        this.#mend(fault.ms, () => {
          this.#storms -= 1
          if (this.#storms === 0) network.weather = this.#knobs.weather
        })
        break
      case 'revoke':
        void this.#revoke(fault.key, fault.isPushed)
        break
      case 'restore':
        this.#restore(fault.ms)
        break
    }
  }

  #mend(ms: number, mend: () => void): void {
    this.#world.time.after(ms, mend)
  }

  #pause(name: string, ms: number): void {
    const machine = this.#world.machine(name)
    machine.pause()
    this.#mend(ms, () => machine.resume())
  }

  #suspend(name: string, ms: number): void {
    const machine = this.#world.machine(name)
    machine.sleep()
    this.#mend(ms, () => machine.wake())
  }

  #crash(name: string, ms: number): void {
    const process = this.#world.process(name)
    if (process === undefined || !process.machine.isUp) return
    process.machine.kill()
    this.#mend(ms, () => {
      // During a restore nobody starts a lockd but the operator, at its end.
      const isHeldBack = this.#isRestoring && this.#isServer(name)
      if (!process.machine.isUp && !isHeldBack) process.restart()
    })
  }

  /** `dlock revoke`, and perhaps the push of the floor; either may fail, and is not repeated. */
  async #revoke(key: string, isPushed: boolean): Promise<void> {
    const { operator, servers, network, resource, journal } = this.#world
    const [server] = servers
    if (server === undefined) return
    try {
      const revocation = await network.call(operator, server.machine, `revoke ${key}`, () =>
        server.engine.revoke(key, 'operator', 'simulated'),
      )
      if (revocation.kind !== 'revoked') return
      const { newTokenFloor } = revocation.outcome
      journal.count('revoked', `${key} floor ${newTokenFloor}`)
      if (!isPushed || newTokenFloor === undefined) return
      await network.call(operator, resource.machine, `push ${key} ${newTokenFloor}`, () =>
        resource.push(key, newTokenFloor),
      )
    } catch (error) {
      journal.write(`the revocation of ${key} failed: ${String(error)}`)
    }
  }

  /**
   * The procedure of docs/guide/operations.md: stop every lockd, restore, wait for the longest
   * lease, advance the tokens, start.
   */
  #restore(lostMs: number): void {
    const { time, database, servers } = this.#world
    if (this.#isRestoring) return
    this.#isRestoring = true
    for (const { machine } of [database, ...servers]) if (machine.isUp) machine.kill()
    database.restart()
    database.restore(time.nowNanos - lostMs * 1_000_000)
    const { restoreWithout } = this.#breakage
    const longestMs = Math.max(this.#knobs.sessionTtlMs, ...this.#knobs.ttlsMs)
    // By an operator's watch: a tenth more covers every clock's rate.
    time.after(restoreWithout === 'waiting' ? 0 : longestMs * 1.1, () => {
      if (!database.machine.isUp) database.restart()
      if (restoreWithout !== 'advancing') {
        void database.plain.capabilities().tokens?.advanceTokens(this.#above())
      }
      for (const server of servers) server.restart()
      this.#isRestoring = false
    })
  }

  /** Above every fence, and above every token in anybody's logs. */
  #above(): bigint {
    const { resource, database } = this.#world
    const fence = resource.highestFence()
    const logged = database.witness.highest
    if (this.#breakage.restoreWithout === 'reading the logs') return fence > 0n ? fence : 1n
    return (fence > logged ? fence : logged) + 1n
  }

  #isServer(name: string): boolean {
    return this.#world.servers.some(({ machine }) => machine.name === name)
  }
}

/** Without its time, which the line has. */
function describe(fault: Fault): string {
  return JSON.stringify({ ...fault, atMs: undefined })
}
