import { ContentionError, type LockHandle } from '@dlock/lock-api'
import { WaitQueue, type WaitQueueOptions } from './wait-queue.ts'
import type { Waiter } from './waiter.ts'

export interface WaitQueuesOptions extends WaitQueueOptions {
  readonly maxWaiters: number
}

/** The queues of all keys that somebody in this process wants; a queue exists while it is needed. */
export class WaitQueues {
  readonly #queues = new Map<string, WaitQueue>()
  readonly #options: WaitQueuesOptions

  constructor(options: WaitQueuesOptions) {
    this.#options = options
  }

  /** How many keys are asked for or waited for. */
  get size(): number {
    return this.#queues.size
  }

  /** How many calls wait. */
  get waiters(): number {
    let waiters = 0
    for (const queue of this.#queues.values()) waiters += queue.waiting
    return waiters
  }

  find(key: string): WaitQueue | undefined {
    return this.#queues.get(key)
  }

  /** @throws ContentionError when `maxWaiters` are in the queue already */
  join(waiter: Waiter): Promise<LockHandle | undefined> {
    const { key } = waiter.request
    const { maxWaiters, fallbackPollMs } = this.#options
    const queue = this.#queues.get(key) ?? this.#open(key)
    if (queue.size >= maxWaiters) {
      throw new ContentionError(`${maxWaiters} calls wait for this key already`, {
        retryAfterMs: fallbackPollMs,
      })
    }
    return queue.join(waiter)
  }

  /** Announcements may have been missed: every head asks. */
  freedAll(): void {
    for (const queue of this.#queues.values()) queue.freed()
  }

  refuseAll(error: unknown): void {
    for (const queue of this.#queues.values()) queue.refuseAll(error)
  }

  /** Settles when nobody waits any more and no question is on its way to the store. */
  async drained(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.drained()))
  }

  #open(key: string): WaitQueue {
    const queue = new WaitQueue(key, this.#options, () => this.#queues.delete(key))
    this.#queues.set(key, queue)
    return queue
  }
}
