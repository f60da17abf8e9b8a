import { EtcdCluster } from '@dlock/services'
import { EtcdStore } from '@dlock/store-etcd'
import { expect, test } from 'vitest'
import { Holders, pause } from './holders.ts'
import { leaderOf } from './leader.ts'

const FREEZES = 8
const FREEZE_MS = 5_000
/** In which it catches up, and does its harm, if it can. */
const RESUMED_MS = 3_000
const LOCKS = 60

/**
 * The test that broke the obvious design: a leader that is frozen for longer than a lease, and
 * resumes, acknowledges renewals of leases that are gone and revokes ones that were renewed.
 */
test('INV-06: a leader frozen for longer than the leases, 8 times, costs no grant and makes no second holder', {
  timeout: 300_000,
}, async () => {
  await using cluster = await EtcdCluster.start(3)
  const { endpoints } = cluster
  // Each store talks to one member first, and to the others when that one does not answer.
  const stores = endpoints.map(
    (_, index) =>
      new EtcdStore({ endpoints: [...endpoints.slice(index), ...endpoints.slice(0, index)] }),
  )
  for (const store of stores) await store.start()
  const holders = new Holders()
  holders.start(stores, LOCKS)
  for (let freeze = 0; freeze < FREEZES; freeze += 1) {
    const leader = cluster.member(await leaderOf(endpoints))
    leader.pause()
    await pause(FREEZE_MS)
    leader.resume()
    await pause(RESUMED_MS)
  }
  const tally = await holders.stop()
  for (const store of stores) store.close()
  console.info(`frozen leader: ${JSON.stringify(tally)}`)
  expect(tally.renewals).toBeGreaterThan(LOCKS * FREEZES)
  expect(tally).toMatchObject({ earlyLosses: 0, doubleHolders: 0, tokensOutOfOrder: 0 })
})
