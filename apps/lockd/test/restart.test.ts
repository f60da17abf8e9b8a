import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunningProcess } from '@dlock/faults'
import type { LockHandle } from '@dlock/lock-api'
import { LockClient, type LockClientSession } from '@dlock/lock-client'
import { expect, onTestFinished, test } from 'vitest'
import { startListening, temporaryFolder } from './start-lockd.ts'

const ROUNDS = 3
const WORKERS = 8
const KEYS = ['a', 'b', 'c']
const HELD_KEYS = ['held/1', 'held/2', 'held/3']
/** Longer than a round takes, so that what was held before the crash must be held after it. */
const LONG_MS = 60_000
/** For a hung test on a machine that is busy. */
const WITHIN_MS = 240_000

test(`kill -9 of lockd and its PostgreSQL under load, ${ROUNDS} times: no committed grant is lost, no token repeated`, {
  timeout: WITHIN_MS,
}, async () => {
  const cwd = await temporaryFolder()
  const highest = new Map<string, bigint>()
  for (let round = 0; round < ROUNDS; round += 1) {
    const { process: lockd, url } = await startListening([], { cwd })
    const client = new LockClient({ url, sessionTtlMs: LONG_MS })
    onTestFinished(() => client.close())
    const session = await client.openSession('holder')
    const load = new Load(client, highest)
    await load.hasGranted(200)
    const held = await acquireAll(session, round)
    for (const lock of held) load.note(lock)
    await load.hasGranted(300)
    await killEverything(lockd, cwd)
    await load.stop()

    const again = await startListening([], { cwd })
    const next = new LockClient({ url: again.url, sessionTtlMs: LONG_MS })
    onTestFinished(() => next.close())
    for (const lock of held) {
      const found = await next.inspect(lock.key)
      expect(found).toMatchObject({ ownerId: 'holder', fencingToken: lock.fencingToken })
    }
    const successor = await next.openSession('successor')
    for (const key of KEYS) {
      const lock = await successor.acquire(key, { ttlMs: 1_000, maxWaitMs: 30_000 })
      if (lock === undefined) throw new Error(`${key} never came free`)
      expect(lock.fencingToken).toBeGreaterThan(highest.get(key) ?? 0n)
      highest.set(key, lock.fencingToken)
    }
    await next.close()
    await killEverything(again.process, cwd)
  }
})

async function acquireAll(session: LockClientSession, round: number): Promise<LockHandle[]> {
  const locks: LockHandle[] = []
  for (const key of HELD_KEYS) {
    const lock = await session.acquire(`${key}/${round}`, { ttlMs: LONG_MS })
    if (lock === undefined) throw new Error(`${key} is held already`)
    locks.push(lock)
  }
  return locks
}

/** Workers that acquire and release without a pause, until the service is gone. */
class Load {
  readonly #highest: Map<string, bigint>
  readonly #workers: Promise<void>[]
  #stopped = false
  #granted = 0
  #onGrant: () => void = () => {}

  constructor(client: LockClient, highest: Map<string, bigint>) {
    this.#highest = highest
    this.#workers = Array.from({ length: WORKERS }, (_, n) => this.#work(client, `w${n}`))
  }

  /** Resolves after this many more grants. */
  hasGranted(more: number): Promise<void> {
    const enough = this.#granted + more
    return new Promise((resolve) => {
      this.#onGrant = () => {
        if (this.#granted >= enough) resolve()
      }
    })
  }

  /** A token that was answered: every later one of the key must be above it. */
  note({ key, fencingToken }: LockHandle): void {
    expect(fencingToken).toBeGreaterThan(this.#highest.get(key) ?? 0n)
    this.#highest.set(key, fencingToken)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#workers)
  }

  async #work(client: LockClient, ownerId: string): Promise<void> {
    const session = await client.openSession(ownerId)
    for (let turn = 0; !this.#stopped; turn += 1) {
      const key = KEYS[turn % KEYS.length] ?? 'a'
      try {
        const lock = await session.acquire(key, { ttlMs: 1_000, maxWaitMs: 5_000 })
        if (lock === undefined) continue
        this.note(lock)
        this.#granted += 1
        this.#onGrant()
        await session.release(lock)
      } catch (error) {
        if (error instanceof Error && error.name === 'AssertionError') throw error
        return // The service is gone, as it is meant to be.
      }
    }
  }
}

/** At once: lockd, the supervisor, which would have stopped PostgreSQL politely, and PostgreSQL. */
async function killEverything(lockd: RunningProcess, cwd: string): Promise<void> {
  const data = join(cwd, '.dlock', 'postgres', 'cluster', 'data')
  const postmaster = Number.parseInt(await readFile(join(data, 'postmaster.pid'), 'utf8'), 10)
  const status = await readFile(`/proc/${postmaster}/status`, 'utf8')
  const supervisor = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1])
  for (const pid of [supervisor, postmaster]) process.kill(pid, 'SIGKILL')
  await lockd.kill()
}
