import { main } from '@dlock/cli'
import {
  idempotencyKeyOf,
  lockKeyOf,
  paymentOperations as payments,
  railOperations as rail,
} from '@dlock/messages'
import { systemClock } from '@dlock/system'
import { expect, test } from 'vitest'
import { Town } from './town.ts'

test('decision 5, P-28: a revocation that is pushed fences its holder out of both guards at once', async () => {
  await using town = await Town.open()
  const { payoutId, accountId } = await town.payout()
  const key = lockKeyOf(accountId)
  const sessionId = await town.engine.openSession('stuck', 60_000)
  const lock = await town.engine.forSession(sessionId).tryAcquire(key, 'stuck', 60_000)
  const fencingToken = String(lock?.fencingToken)
  const by = {
    payoutId,
    ownerId: 'stuck',
    fencingToken,
    idempotencyKey: idempotencyKeyOf(payoutId),
  }
  await town.ask(payments.claim, { ...by, expectedState: 'PENDING' })

  const said: string[] = []
  const guards = [town.paymentUrl, town.proxyUrl].map(
    (url) => `${url}/v1/fences/${accountId}/advance`,
  )
  const code = await main(
    [
      'revoke',
      key,
      '--reason',
      'it does not move',
      '--url',
      town.lockUrl,
      ...guards.flatMap((url) => ['--push', url]),
    ],
    {
      env: {},
      clock: systemClock,
      out: (text) => said.push(text),
      err: (text) => said.push(text),
      onSignal: () => () => false,
    },
  )
  expect({ code, said: said.join('\n') }).toMatchObject({ code: 0 })

  const mark = town.ask(payments.submitted, { ...by, submissionId: 's' })
  await expect(mark).rejects.toThrow('FENCED_OUT')
  const what = { accountId, amountMinor: 100, currency: 'EUR', beneficiaryRef: 'ben-1' }
  const submit = town.ask(rail.submit, { ...by, ...what }, town.proxyUrl)
  await expect(submit).rejects.toThrow('FENCED_OUT')

  // Nobody is locked out but the displaced holder.
  await using _executor = await town.executor()
  await town.until(await town.ask(payments.getPayout, { payoutId }), 'POSTED')
})
