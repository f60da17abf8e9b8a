import { EtcdCluster } from '@dlock/services'
import { EtcdStore } from '@dlock/store-etcd'
import { systemClock } from '@dlock/system'
import { describeLockStore } from '@dlock/tck'
import { afterAll, beforeAll } from 'vitest'
import { EtcdClient } from '../src/client/etcd-client.ts'
import { remove } from '../src/client/txn.ts'
import { KeySpace } from '../src/key-space.ts'

let cluster: EtcdCluster
let namespaces = 0

beforeAll(async () => {
  cluster = await EtcdCluster.start()
})
afterAll(() => cluster[Symbol.asyncDispose]())

describeLockStore('EtcdStore', {
  capabilities: [
    'waiting',
    'queue',
    'transfer',
    'sessions',
    'listing',
    'audit',
    'tokens',
    'health',
    'ttlBounds',
  ],
  sideBySide: true,
  async open() {
    namespaces += 1
    const namespace = `tck-${namespaces}`
    const { endpoints } = cluster
    const stores: EtcdStore[] = []
    const openReplica = async (): Promise<EtcdStore> => {
      const store = new EtcdStore({ endpoints, namespace, tryMs: 20_000 })
      stores.push(store)
      await store.start()
      return store
    }
    const behind = new EtcdClient({ endpoints, tryMs: 20_000, clock: systemClock })
    return {
      store: await openReplica(),
      clock: systemClock,
      openReplica,
      killSession: async (sessionId) => {
        const marker = new KeySpace(namespace).session(sessionId)
        await behind.txn({ compare: [], success: [remove(marker)], failure: [] })
      },
      waitMs: (ms) =>
        new Promise((resolve) => systemClock.setTimer(ms, resolve, { keepAlive: true })),
      close: async () => {
        for (const store of stores) store.close()
        behind.close()
      },
    }
  },
})
