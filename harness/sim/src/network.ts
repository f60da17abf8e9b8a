import { ContentionError } from '@dlock/lock-api'
import type { Chance } from './chance.ts'
import type { Journal } from './journal.ts'
import type { Machine } from './machine.ts'
import type { VirtualTime } from './virtual-time.ts'

/** What the network does to a message; probabilities from 0 to 1. */
export interface Weather {
  /** An ordinary way takes up to this. */
  readonly delayMs: number
  readonly loss: number
  /** A second copy arrives, at a time of its own. */
  readonly duplication: number
  /** This one takes up to `slowMs`: others overtake it. */
  readonly slowness: number
  readonly slowMs: number
}

/**
 * Messages between machines: each may be lost, delayed, overtaken, and delivered twice. A call is a
 * request and a reply, each a message of its own, so a call that got no answer may have happened.
 */
export class Network {
  readonly #time: VirtualTime
  readonly #chance: Chance
  readonly #journal: Journal
  /** `from>to`, how many partitions cut it at the moment. */
  readonly #cuts = new Map<string, number>()
  weather: Weather

  constructor(time: VirtualTime, chance: Chance, journal: Journal, weather: Weather) {
    this.#time = time
    this.#chance = chance
    this.#journal = journal
    this.weather = weather
  }

  /** Nothing arrives from `from` at `to` any more, until it is mended as often as it was cut. */
  cut(from: string, to: string): void {
    this.#cuts.set(`${from}>${to}`, (this.#cuts.get(`${from}>${to}`) ?? 0) + 1)
  }

  mend(from: string, to: string): void {
    this.#cuts.set(`${from}>${to}`, (this.#cuts.get(`${from}>${to}`) ?? 0) - 1)
  }

  /**
   * `handle` at `to`, perhaps, perhaps twice, and its first answer, perhaps. Whoever calls bounds
   * the wait. A machine that is down refuses the connection, or is silent.
   */
  call<T>(from: Machine, to: Machine, what: string, handle: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { life } = from
      const answer = (settle: () => void): void => this.#post(to, from, life, settle, what)
      if (!to.isUp && this.#chance.happens(0.5)) {
        answer(() => reject(new ContentionError('connection refused')))
        return
      }
      const toLife = to.life
      this.#post(
        from,
        to,
        toLife,
        () => {
          this.#journal.write(`${from.name}>${to.name} ${what}`)
          const settled = (settle: () => void): void => {
            if (to.life === toLife) answer(settle)
          }
          handle().then(
            (value) => settled(() => resolve(value)),
            (error: unknown) => settled(() => reject(error as Error)),
          )
        },
        what,
      )
    })
  }

  /** One way, no answer. */
  post(from: Machine, to: Machine, what: string, handle: () => void): void {
    this.#post(from, to, to.life, handle, what)
  }

  #post(from: Machine, to: Machine, toLife: number, arrive: () => void, what: string): void {
    const { loss, duplication } = this.weather
    const isCut = (this.#cuts.get(`${from.name}>${to.name}`) ?? 0) > 0
    // Always drawn, so that a cut changes no chance but its own.
    const [isLost, isTwice] = [this.#chance.happens(loss), this.#chance.happens(duplication)]
    const ways = [this.#wayMs(), this.#wayMs()]
    if (isCut || isLost) {
      this.#journal.write(`${from.name}>${to.name} ${what} ${isCut ? 'cut off' : 'lost'}`)
      return
    }
    for (const ms of isTwice ? ways : ways.slice(0, 1)) {
      this.#time.after(ms, () => to.enter(toLife, arrive))
    }
  }

  #wayMs(): number {
    const { delayMs, slowness, slowMs } = this.weather
    const isSlow = this.#chance.happens(slowness)
    return this.#chance.between(0.05, isSlow ? slowMs : delayMs)
  }
}
