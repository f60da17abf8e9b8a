import {
  type Answered,
  call,
  createLog,
  idempotencyKeyOf,
  paymentOperations as operations,
  type Payout,
  type PayoutState,
} from '@dlock/messages'
import type { Operation } from '@dlock/protocol'
import { createTestDatabase } from '@dlock/services'
import pg from 'pg'
import { startPaymentResource } from '../src/index.ts'

/** A payment resource of a test's own, its database, and everything that can be asked of it. */
export class PaymentDesk implements AsyncDisposable {
  readonly url: string
  readonly pool: pg.Pool
  readonly lines: string[]
  readonly #stop: () => Promise<void>
  #ids = 0
  #token = 0n

  private constructor(url: string, pool: pg.Pool, lines: string[], stop: () => Promise<void>) {
    this.url = url
    this.pool = pool
    this.lines = lines
    this.#stop = stop
  }

  static async open(env: Record<string, string> = {}): Promise<PaymentDesk> {
    const database = await createTestDatabase()
    const lines: string[] = []
    const log = createLog('payment-resource', {
      stream: { write: (line) => void lines.push(line) },
    })
    const settings = { PAYDB_URL: database.url, PAYMENT_LISTEN_PORT: '0', ...env }
    const service = await startPaymentResource(settings, { log })
    const pool = new pg.Pool({ connectionString: database.url, max: 4 })
    return new PaymentDesk(service.url, pool, lines, async () => {
      await service.close()
      await pool.end()
      await database[Symbol.asyncDispose]()
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop()
  }

  ask<Input extends object, Output>(
    operation: Operation<Input, Output>,
    input: Input,
  ): Promise<Answered<Output>> {
    return call(this.url, operation, input, { timeoutMs: 10_000 })
  }

  /** The answer's code, or the state that it led to. */
  async codeOf(answered: Promise<Answered<Payout>>): Promise<string> {
    const answer = await answered
    if (answer.kind === 'ok') return answer.output.state
    return answer.kind === 'refused' ? answer.envelope.code : answer.why
  }

  nextToken(): bigint {
    this.#token += 1n
    return this.#token
  }

  async account(openingBalanceMinor = 1_000): Promise<string> {
    this.#ids += 1
    const accountId = `acc-${this.#ids}`
    const input = { ownerId: 'test', accountId, currency: 'EUR', openingBalanceMinor }
    await this.#must(this.ask(operations.createAccount, input))
    return accountId
  }

  async payout(accountId: string, amountMinor = 100): Promise<string> {
    this.#ids += 1
    const payoutId = `pay-${this.#ids}`
    const content = { amountMinor, currency: 'EUR', beneficiaryRef: 'ben-1' }
    await this.#must(
      this.ask(operations.createPayout, { ownerId: 'test', payoutId, accountId, ...content }),
    )
    return payoutId
  }

  fenced(payoutId: string, token: bigint, ownerId = 'worker'): Fence {
    const idempotencyKey = idempotencyKeyOf(payoutId)
    return { payoutId, ownerId, fencingToken: token.toString(), idempotencyKey }
  }

  async state(payoutId: string): Promise<PayoutState> {
    return (await this.#must(this.ask(operations.getPayout, { payoutId }))).state
  }

  /** A payout of an account of its own, led to `state` by legal steps; and its holder's token. */
  async inState(
    state: PayoutState,
  ): Promise<{ payoutId: string; accountId: string; token: bigint }> {
    const accountId = await this.account()
    const amount = state === 'FAILED' ? 5_000 : 100
    const payoutId = await this.payout(accountId, amount)
    const token = this.nextToken()
    const by = this.fenced(payoutId, token)
    const it = { payoutId, accountId, token }
    const submissionId = 'sub-1'
    const railReference = 'R-1'
    if (state === 'PENDING') return it
    if (state === 'ABANDONED') {
      const reason = 'no longer wanted'
      await this.#must(this.ask(operations.cancel, { payoutId, ownerId: 'operator', reason }))
      return it
    }
    const claimed = this.ask(operations.claim, { ...by, expectedState: 'PENDING' })
    if (state === 'FAILED') await claimed
    else await this.#must(claimed)
    if (state === 'FAILED' || state === 'CLAIMED') return it
    await this.#must(this.ask(operations.submitted, { ...by, submissionId }))
    if (state === 'RAIL_SUBMITTED') return it
    const outcome =
      state === 'RAIL_AMBIGUOUS'
        ? ({ railOutcome: 'AMBIGUOUS' } as const)
        : ({ railOutcome: 'ACKED', railReference } as const)
    await this.#must(this.ask(operations.outcome, { ...by, submissionId, ...outcome }))
    if (state !== 'POSTED') return it
    await this.#must(this.ask(operations.post, { ...by, submissionId, railReference }))
    return it
  }

  async metric(line: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    const found = text.split('\n').find((each) => each.startsWith(`${line} `))
    return Number(found?.split(' ').at(-1))
  }

  async #must<Output>(answered: Promise<Answered<Output>>): Promise<Output> {
    const answer = await answered
    if (answer.kind !== 'ok') throw new Error(JSON.stringify(answer))
    return answer.output
  }
}

export interface Fence {
  readonly payoutId: string
  readonly ownerId: string
  readonly fencingToken: string
  readonly idempotencyKey: string
}
