import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunningProcess, startProcess } from '@dlock/faults'
import { createDatabase, type LocalPostgres } from '@dlock/local-postgres'
import { EtcdCluster } from '@dlock/services/etcd-cluster'
import pg from 'pg'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface TownOptions {
  readonly postgres: LocalPostgres
  readonly lockUrl: string
  /** Logs and evidence go here. */
  readonly folder: string
  readonly accountGuard?: boolean
  readonly railGuard?: boolean
  /** Of the rail stub, the rail proxy and the payment resource; added to the defaults. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Account {
  readonly balanceMinor: number
  readonly ledgerSumMinor: number
  readonly fence: string
}

export interface RailRequest {
  readonly clientRef: string
  readonly amountMinor: number
}

/** The two guards and the rail, as real processes on databases of their own. */
export class PayoutTown implements AsyncDisposable {
  readonly paymentUrl: string
  readonly railProxyUrl: string
  readonly railUrl: string
  readonly folder: string
  readonly paydb: pg.Pool
  readonly #lockUrl: string
  readonly #processes: Map<string, RunningProcess>

  private constructor(parts: {
    urls: readonly [string, string, string]
    options: TownOptions
    paydb: pg.Pool
    processes: Map<string, RunningProcess>
  }) {
    ;[this.railUrl, this.railProxyUrl, this.paymentUrl] = parts.urls
    this.folder = parts.options.folder
    this.#lockUrl = parts.options.lockUrl
    this.paydb = parts.paydb
    this.#processes = parts.processes
  }

  static async open(options: TownOptions): Promise<PayoutTown> {
    const { postgres, folder, accountGuard = true, railGuard = true, env = {} } = options
    await mkdir(folder, { recursive: true })
    const processes = new Map<string, RunningProcess>()
    const start = async (name: string, own: Record<string, string>): Promise<string> => {
      const prefix =
        name === 'rail-stub'
          ? /^RAIL_STUB_/
          : name === 'rail-proxy'
            ? /^RAIL_(?!STUB_)/
            : /^PAYMENT_/
      const given = Object.entries(env).filter(([variable]) => prefix.test(variable))
      const running = await startService(name, { ...own, ...Object.fromEntries(given) })
      processes.set(name, running)
      return listeningUrl(running)
    }
    const [paydbUrl, raildbUrl] = await Promise.all([
      createDatabase(postgres.url()),
      createDatabase(postgres.url()),
    ])
    const railUrl = await start('rail-stub', { RAIL_STUB_LISTEN_PORT: '0' })
    const railProxyUrl = await start('rail-proxy', {
      RAIL_PROXY_LISTEN_PORT: '0',
      RAIL_URL: railUrl,
      RAILDB_URL: raildbUrl,
      RAIL_PROXY_FENCING_ENABLED: String(railGuard),
    })
    const paymentUrl = await start('payment-resource', {
      PAYMENT_LISTEN_PORT: '0',
      PAYMENT_RAIL_PROXY_URL: railProxyUrl,
      PAYDB_URL: paydbUrl,
      PAYMENT_FENCING_ENABLED: String(accountGuard),
    })
    const paydb = new pg.Pool({ connectionString: paydbUrl, max: 2 })
    paydb.on('error', () => undefined)
    return new PayoutTown({
      urls: [railUrl, railProxyUrl, paymentUrl],
      options,
      paydb,
      processes,
    })
  }

  /** Starts an executor process named `name`. */
  async executor(
    name: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<RunningProcess> {
    const running = await startService('payout-executor', {
      PAYOUT_LISTEN_PORT: '0',
      PAYOUT_OWNER: name,
      PAYOUT_LOCK_URL: this.#lockUrl,
      PAYOUT_PAYMENT_URL: this.paymentUrl,
      PAYOUT_RAIL_PROXY_URL: this.railProxyUrl,
      PAYOUT_POLL_EVERY: '100ms',
      ...env,
    })
    this.#processes.set(name, running)
    return running
  }

  async createAccount(accountId: string, openingBalanceMinor: number): Promise<void> {
    await this.#post('/v1/accounts', { accountId, currency: 'EUR', openingBalanceMinor })
  }

  async createPayout(payoutId: string, accountId: string, amountMinor: number): Promise<void> {
    const what = { payoutId, accountId, amountMinor, currency: 'EUR', beneficiaryRef: 'ben-1' }
    await this.#post('/v1/payouts', what)
  }

  async importPayouts(csv: string): Promise<void> {
    const headers = { 'content-type': 'text/csv', 'x-owner-id': 'harness' }
    const url = `${this.paymentUrl}/v1/payouts/import`
    await expectOk(await fetch(url, { method: 'POST', headers, body: csv }))
  }

  async stateOf(payoutId: string): Promise<string> {
    const { state } = await getJson<{ state: string }>(`${this.paymentUrl}/v1/payouts/${payoutId}`)
    return state
  }

  account(accountId: string): Promise<Account> {
    return getJson(`${this.paymentUrl}/v1/accounts/${accountId}`)
  }

  /** The rail's own log of what it was asked. */
  async railRequests(): Promise<readonly RailRequest[]> {
    const { requests } = await getJson<{ requests: RailRequest[] }>(`${this.railUrl}/requests`)
    return requests
  }

  async railFaults(faults: Readonly<Record<string, number>>): Promise<void> {
    await postJson(`${this.railUrl}/faults`, faults)
  }

  async reconcile(): Promise<Reconciliation> {
    const response = await fetch(`${this.paymentUrl}/v1/reconciliations`, { method: 'POST' })
    return (await response.json()) as Reconciliation
  }

  /** How many writes each guard has refused for their token. */
  async fencedOut(): Promise<FencedOut> {
    const payment = await getText(`${this.paymentUrl}/metrics`)
    const rail = await getText(`${this.railProxyUrl}/metrics`)
    const of = (text: string, resource: string): number =>
      Number(
        new RegExp(`^lock_fenced_out_total\\{resource="${resource}"\\} (.*)$`, 'm').exec(text)?.[1],
      )
    return {
      account: of(payment, 'account'),
      ledger: of(payment, 'ledger'),
      rail: of(rail, 'rail'),
    }
  }

  async ledger(): Promise<readonly object[]> {
    const { rows } = await this.paydb.query<object>(
      `SELECT transaction_id, leg, account_id, amount_minor::text, booked_at
         FROM ledger_entry ORDER BY entry_id`,
    )
    return rows
  }

  /** What the two guards' counters, the rail, the ledger and the events say now, into a file. */
  async keepEvidence(name: string): Promise<void> {
    const { rows: events } = await this.paydb.query<object>(
      `SELECT payout_id, event, to_state, actor, fence::text, detail, at
         FROM payout_event ORDER BY event_id`,
    )
    await this.keep(`${name}.json`, {
      railRequests: await this.railRequests(),
      fencedOut: await this.fencedOut(),
      ledger: await this.ledger(),
      events,
    })
  }

  async keep(name: string, content: object): Promise<void> {
    await writeFile(join(this.folder, name), `${JSON.stringify(content, undefined, 2)}\n`)
  }

  /** Writes every process's log, and ends them all. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.paydb.end()
    for (const [name, running] of this.#processes) {
      await writeFile(join(this.folder, `${name}.log`), `${running.lines.join('\n')}\n`)
    }
    await Promise.all([...this.#processes.values()].map((running) => running.kill()))
  }

  async #post(path: string, body: object): Promise<void> {
    await postJson(this.paymentUrl + path, body)
  }
}

export interface FencedOut {
  readonly account: number
  readonly ledger: number
  readonly rail: number
}

export interface Reconciliation {
  readonly checkedPayouts: number
  readonly resolved: readonly { readonly payoutId: string; readonly state: string }[]
  readonly discrepancies: readonly { readonly kind: string; readonly detail: string }[]
}

/** Where lockd keeps the locks. Nothing else in the town knows. */
export type Backend = 'pg' | 'etcd'

export interface Lockd extends AsyncDisposable {
  readonly url: string
  readonly process: RunningProcess
}

/** lockd on a database, or an etcd, of its own. */
export async function startLockd(postgres: LocalPostgres, backend: Backend): Promise<Lockd> {
  const etcd = backend === 'etcd' ? await EtcdCluster.start() : undefined
  const env: Record<string, string> =
    etcd === undefined
      ? { LOCKDB_URL: await createDatabase(postgres.url()) }
      : { LOCK_BACKEND: 'etcd', ETCD_ENDPOINTS: etcd.endpoints.join(',') }
  const running = await startProcess(process.execPath, {
    args: [join(ROOT, 'apps/lockd/bin/lockd.js'), '--lock-listen-port=0', '--lock-log-level=info'],
    env,
  })
  const [, url = ''] = await running.waitForLine(/"event":"server_listening".*"url":"([^"]+)"/)
  return {
    url,
    process: running,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      await etcd?.[Symbol.asyncDispose]()
    },
  }
}

/** @throws RangeError when it is neither */
export function backendOf(text: string): Backend {
  if (text === 'pg' || text === 'etcd') return text
  throw new RangeError(`backend must be pg or etcd, got ${JSON.stringify(text)}`)
}

function startService(name: string, env: Record<string, string>): Promise<RunningProcess> {
  const program = join(ROOT, `payouts/${name}/bin/${name}.js`)
  return startProcess(process.execPath, { args: [program], env })
}

async function listeningUrl(running: RunningProcess): Promise<string> {
  const [, url = ''] = await running.waitForLine(/"event":"service_listening".*"url":"([^"]+)"/)
  return url
}

async function postJson(url: string, body: object): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-owner-id': 'harness' }
  await expectOk(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }))
}

async function expectOk(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`${response.url}: ${await response.text()}`)
}

async function getText(url: string): Promise<string> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url}: ${await response.text()}`)
  return response.text()
}

async function getJson<T>(url: string): Promise<T> {
  return JSON.parse(await getText(url)) as T
}
