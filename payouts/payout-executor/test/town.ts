import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { LockEngine } from '@dlock/engine'
import { createLog as createLockLog, createLockServer, LockMetrics } from '@dlock/lock-server'
import {
  call,
  createLog,
  lockKeyOf,
  type Payout,
  type PayoutState,
  paymentOperations as payments,
} from '@dlock/messages'
import { type Reconciliation, startPaymentResource } from '@dlock/payment-resource'
import type { Operation } from '@dlock/protocol'
import { startRailProxy } from '@dlock/rail-proxy'
import { type LoggedRequest, startRailStub } from '@dlock/rail-stub'
import { createTestDatabase } from '@dlock/services'
import { MemoryStore } from '@dlock/store-memory'
import pg from 'pg'
import { startPayoutExecutor } from '../src/index.ts'
import type { Step } from '../src/section.ts'

type Closable = { close(): Promise<unknown> }

/** Everything but the executors: lock service, two guards, the rail; each on a port of its own. */
export class Town implements AsyncDisposable {
  readonly closables: Closable[] = []
  readonly engine: LockEngine = new LockEngine({ store: new MemoryStore(), reapEveryMs: 100 })
  lockUrl = ''
  paymentUrl = ''
  proxyUrl = ''
  railUrl = ''
  paydb!: pg.Pool
  #ids = 0

  static async open(env: Record<string, string> = {}): Promise<Town> {
    const town = new Town()
    try {
      await town.#open(env)
    } catch (error) {
      await town[Symbol.asyncDispose]()
      throw error
    }
    return town
  }

  async #open(env: Record<string, string>): Promise<void> {
    const silent = (service: string) => createLog(service, { stream: { write: () => undefined } })
    const only = (prefix: RegExp): Record<string, string> =>
      Object.fromEntries(Object.entries(env).filter(([name]) => prefix.test(name)))
    for (const name of ['paydb', 'raildb'] as const) {
      const database = await createTestDatabase()
      this.closables.push({ close: async () => database[Symbol.asyncDispose]() })
      env[`${name.toUpperCase()}_URL`] = database.url
    }
    const rail = await startRailStub(
      { RAIL_STUB_LISTEN_PORT: '0', RAIL_STUB_LATENCY: '0ms', ...only(/^RAIL_STUB_/) },
      { log: silent('rail-stub') },
    )
    this.closables.push(rail)
    this.railUrl = rail.url
    const proxy = await startRailProxy(
      {
        RAIL_PROXY_LISTEN_PORT: '0',
        RAIL_URL: rail.url,
        RAILDB_URL: env['RAILDB_URL'],
        ...only(/^RAIL_(?!STUB_)/),
      },
      { log: silent('rail-proxy') },
    )
    this.closables.push(proxy)
    this.proxyUrl = proxy.url
    const payment = await startPaymentResource(
      {
        PAYMENT_LISTEN_PORT: '0',
        PAYMENT_RAIL_PROXY_URL: proxy.url,
        PAYDB_URL: env['PAYDB_URL'],
        ...only(/^PAYMENT_/),
      },
      { log: silent('payment-resource') },
    )
    this.closables.push(payment)
    this.paymentUrl = payment.url
    this.paydb = new pg.Pool({ connectionString: env['PAYDB_URL'], max: 2 })
    this.closables.push({ close: () => this.paydb.end() })
    await this.engine.start()
    this.closables.push(this.engine)
    const server = createLockServer({
      engine: this.engine,
      metrics: new LockMetrics(this.engine.backendId),
      log: createLockLog({ level: 'silent' }),
    })
    this.closables.push(server)
    this.lockUrl = (await server.listen({ port: 0 })).url
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const closable of this.closables.reverse()) await closable.close()
  }

  async ask<Input extends object, Output>(
    operation: Operation<Input, Output>,
    input: Input,
    base = this.paymentUrl,
  ): Promise<Output> {
    const answered = await call(base, operation, input, { timeoutMs: 10_000 })
    if (answered.kind !== 'ok') throw new Error(JSON.stringify(answered))
    return answered.output
  }

  /** An account of its own with one payout, or several. */
  async payouts(count = 1, amountMinor = 100): Promise<Payout[]> {
    this.#ids += 1
    const accountId = `acc-${this.#ids}`
    const by = { ownerId: 'test', accountId, currency: 'EUR' }
    await this.ask(payments.createAccount, { ...by, openingBalanceMinor: 1_000 })
    const made: Payout[] = []
    for (let i = 0; i < count; i += 1) {
      const payoutId = `pay-${this.#ids}-${i}`
      const input = { ...by, payoutId, amountMinor, beneficiaryRef: 'ben-1' }
      made.push(await this.ask(payments.createPayout, input))
    }
    return made
  }

  /** Lines of a payout file, without its header. */
  async importPayouts(lines: readonly string[]): Promise<void> {
    const header = 'payoutId,accountId,amountMinor,currency,beneficiaryRef'
    const response = await fetch(`${this.paymentUrl}/v1/payouts/import`, {
      method: 'POST',
      headers: { 'content-type': 'text/csv', 'x-owner-id': 'test' },
      body: [header, ...lines].join('\n'),
    })
    if (!response.ok) throw new Error(await response.text())
  }

  async payout(): Promise<Payout> {
    const [payout] = await this.payouts()
    if (payout === undefined) throw new Error('no payout')
    return payout
  }

  faults(faults: object): Promise<Response> {
    const headers = { 'content-type': 'application/json' }
    return fetch(`${this.railUrl}/faults`, {
      method: 'POST',
      headers,
      body: JSON.stringify(faults),
    })
  }

  /** What the rail itself says it was asked for one payout. */
  async railRequests({ payoutId }: Payout): Promise<number> {
    const answer = await (await fetch(`${this.railUrl}/requests`)).json()
    const { requests } = answer as { requests: LoggedRequest[] }
    return requests.filter(({ clientRef }) => clientRef === payoutId).length
  }

  async reconcile(): Promise<Reconciliation> {
    const response = await fetch(`${this.paymentUrl}/v1/reconciliations`, { method: 'POST' })
    return (await response.json()) as Reconciliation
  }

  settings(more: Record<string, string> = {}): Record<string, string> {
    return {
      PAYOUT_LISTEN_PORT: '0',
      PAYOUT_LOCK_URL: this.lockUrl,
      PAYOUT_PAYMENT_URL: this.paymentUrl,
      PAYOUT_RAIL_PROXY_URL: this.proxyUrl,
      PAYOUT_POLL_EVERY: '20ms',
      ...more,
    }
  }

  /** An executor in this process, until the block ends. */
  async executor(
    more: Record<string, string> = {},
  ): Promise<AsyncDisposable & { readonly url: string }> {
    const log = createLog('payout-executor', { stream: { write: () => undefined } })
    const running = await startPayoutExecutor(this.settings(more), { log })
    return { url: running.url, [Symbol.asyncDispose]: () => running.close() }
  }

  /** A real executor process that stops at `step`; resolves when it is there. */
  async executorHeldAt(step: Step): Promise<ChildProcess> {
    const program = fileURLToPath(new URL('../bin/payout-executor.js', import.meta.url))
    const env = this.settings({
      PAYOUT_EXPERIMENT_HOLD_AFTER: step,
      PAYOUT_CONCURRENCY: '1',
      PAYOUT_OWNER: 'the-killed-one',
    })
    const child = spawn(process.execPath, [program], {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.includes('"experiment_holding"')) return child
    }
    throw new Error(`the executor ended before ${step}`)
  }

  /** Ends the process without a word, and its lock at once, so that no test waits for a lease. */
  async kill(child: ChildProcess, { accountId }: Payout): Promise<void> {
    child.kill('SIGKILL')
    await once(child, 'exit')
    await this.engine.revoke(lockKeyOf(accountId), 'test', 'the holder was killed')
  }

  /** Resolves when the payout is in one of `states`. */
  async until({ payoutId }: Payout, ...states: PayoutState[]): Promise<Payout> {
    for (;;) {
      const payout = await this.ask(payments.getPayout, { payoutId })
      if (states.includes(payout.state)) return payout
    }
  }
}
