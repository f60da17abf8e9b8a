import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { call, createLog, idempotencyKeyOf, railOperations as rail } from '@dlock/messages'
import { startRailStub } from '@dlock/rail-stub'
import { createTestDatabase } from '@dlock/services'
import pg from 'pg'
import { expect, test } from 'vitest'

/** How often the proxy is killed; the figures in the README are from 100. */
const KILLS = Number(process.env['KILLS'] ?? 8)
const LANES = 8

/**
 * P-23, INV-02: the proxy is killed with -9 at random points under load, again and again, and its
 * callers behave as badly as they can: what got no answer is submitted again with a higher token.
 */
test(`killed ${KILLS} times between any two steps: never two requests for a payout, none forgotten`, {
  timeout: 60_000 + KILLS * 5_000,
}, async () => {
  await using database = await createTestDatabase()
  const log = createLog('rail-stub', { stream: { write: () => undefined } })
  const stub = await startRailStub(
    { RAIL_STUB_LISTEN_PORT: '0', RAIL_STUB_LATENCY: '2ms' },
    { log },
  )
  const env = {
    PATH: process.env['PATH'],
    RAIL_PROXY_LISTEN_PORT: '0',
    RAIL_URL: stub.url,
    RAILDB_URL: database.url,
  }
  const submitters = Array.from({ length: LANES }, (_, lane) => new Submitter(lane))
  for (let kill = 0; kill < KILLS; kill += 1) {
    const { child, url } = await startProxy(env)
    const load = submitters.map((submitter) => submitter.run(url))
    // Some load, then anywhere in the middle of it.
    await Promise.race(submitters.map((submitter) => submitter.answered(1 + (kill % 7))))
    await new Promise((resolve) => {
      setTimeout(resolve, Math.random() * 25)
    })
    child.kill('SIGKILL')
    await once(child, 'exit')
    await Promise.all(load)
  }

  // Everything once more, under higher tokens still, at a proxy that lives.
  const { child, url } = await startProxy(env)
  await Promise.all(submitters.map((submitter) => submitter.everythingAgain(url)))
  child.kill('SIGKILL')

  const { requests } = (await (await fetch(`${stub.url}/requests`)).json()) as {
    requests: { clientRef: string }[]
  }
  await stub.close()
  const asked = requests.map(({ clientRef }) => clientRef)
  const twice = asked.filter((clientRef, i) => asked.indexOf(clientRef) !== i)
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  const { rows } = await pool.query<{ key: string; outcome: string }>(
    `SELECT idempotency_key AS key, outcome FROM dlock_attempt
        WHERE outcome IN ('UNRESOLVED', 'ACKED', 'REJECTED', 'TIMEOUT')`,
  )
  await pool.end()
  const onRecord = new Map(rows.map(({ key, outcome }) => [key, outcome]))
  const forgotten = asked.filter((clientRef) => !onRecord.has(idempotencyKeyOf(clientRef)))
  const acked = new Set(submitters.flatMap((submitter) => [...submitter.acked]))
  const lost = [...acked].filter((payoutId) => onRecord.get(idempotencyKeyOf(payoutId)) !== 'ACKED')
  const unresolved = rows.filter(({ outcome }) => outcome === 'UNRESOLVED').map(({ key }) => key)
  const askedKeys = new Set(asked.map(idempotencyKeyOf))
  const presented = unresolved.filter((key) => askedKeys.has(key)).length
  console.log(
    `${KILLS} kills, ${asked.length} requests at the rail, ${unresolved.length} attempts unresolved: ` +
      `${presented} presented, ${unresolved.length - presented} killed before they were`,
  )
  expect({ twice, forgotten, lost }).toEqual({ twice: [], forgotten: [], lost: [] })
  expect(asked.length).toBeGreaterThan(KILLS)
})

async function startProxy(
  env: Record<string, string | undefined>,
): Promise<{ child: ChildProcess; url: string }> {
  const program = fileURLToPath(new URL('../bin/rail-proxy.js', import.meta.url))
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the proxy ended at once')))
    lines.on('line', (line) => {
      const { event, url: listening } = JSON.parse(line) as { event: string; url: string }
      if (event === 'service_listening') resolve(listening)
    })
  })
  return { child, url }
}

/** One account's worker: a new payout each time, or an unanswered one again. */
class Submitter {
  readonly acked = new Set<string>()
  readonly #lane: number
  readonly #payouts: string[] = []
  #token = 0n
  #answers = 0
  #wanted: { readonly count: number; readonly resolve: () => void } | undefined

  constructor(lane: number) {
    this.#lane = lane
  }

  /** Submits until the proxy is gone. */
  async run(url: string): Promise<void> {
    this.#answers = 0
    let payoutId = this.#payouts.at(-1) ?? this.#next()
    while (await this.#submit(url, payoutId)) payoutId = this.#next()
  }

  async everythingAgain(url: string): Promise<void> {
    for (const payoutId of this.#payouts) await this.#submit(url, payoutId)
  }

  answered(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wanted = { count, resolve }
    })
  }

  #next(): string {
    const payoutId = `pay-${this.#lane}-${this.#payouts.length}`
    this.#payouts.push(payoutId)
    return payoutId
  }

  async #submit(url: string, payoutId: string): Promise<boolean> {
    this.#token += 1n
    const submission = {
      payoutId,
      accountId: `acc-${this.#lane}`,
      ownerId: `worker-${this.#lane}`,
      fencingToken: this.#token.toString(),
      idempotencyKey: idempotencyKeyOf(payoutId),
      amountMinor: 100,
      currency: 'EUR',
      beneficiaryRef: 'ben-1',
    }
    const answer = await call(url, rail.submit, submission, { timeoutMs: 10_000 })
    if (answer.kind === 'no-answer') return false
    if (answer.kind === 'ok') this.acked.add(payoutId)
    this.#answers += 1
    if (this.#wanted !== undefined && this.#answers >= this.#wanted.count) this.#wanted.resolve()
    return true
  }
}
