import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ContentionError, LockHandle } from '@dlock/lock-api'
import { debianProgram, EtcdCluster } from '@dlock/services'
import { EtcdStore, type EtcdStoreOptions } from '@dlock/store-etcd'
import { systemClock } from '@dlock/system'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EtcdClient } from '../src/client/etcd-client.ts'
import { EtcdError } from '../src/client/etcd-error.ts'
import { Authority, read } from './certificates.ts'

const run = promisify(execFile)

function storeOn(options: EtcdStoreOptions): EtcdStore {
  const store = new EtcdStore({ onWarning: () => {}, tryMs: 20_000, ...options })
  onTestFinished(() => store.close())
  return store
}

/** Every way to etcd that there is: transactions, leases, and the watch. */
async function serves(store: EtcdStore): Promise<void> {
  await store.start()
  const session = await store.openSession('worker', 60_000)
  const handle = await store.tryInsert('job', 'worker', session, 60_000)
  if (handle === undefined) throw new Error('a free key must be granted')
  const freed = new Promise<string>((resolve) => {
    void store
      .capabilities()
      .waiting?.subscribe(resolve, () => {})
      .then(() => store.deleteIfOwner('job', handle.fencingToken))
  })
  expect(await freed).toBe('job')
}

describe('TLS', () => {
  let authority: Authority
  let server: readonly string[]

  beforeAll(async () => {
    authority = await Authority.create()
    const { cert, key } = await authority.issue('member', 'DNS:etcd.test,IP:127.0.0.1')
    server = [`--cert-file=${cert}`, `--key-file=${key}`]
  })
  afterAll(() => authority[Symbol.asyncDispose]())

  test('a store that trusts the authority is served; without TLS, or trusting another, it is not', async () => {
    await using etcd = await EtcdCluster.start(1, server, 'https')
    const { endpoints } = etcd
    const ca = await readFile(authority.ca)
    await serves(storeOn({ endpoints, tls: { ca } }))
    await expect(storeOn({ endpoints }).start()).rejects.toBeInstanceOf(ContentionError)
    await using other = await Authority.create()
    const tls = { ca: await readFile(other.ca) }
    await expect(storeOn({ endpoints, tls }).start()).rejects.toBeInstanceOf(ContentionError)
  })

  test('the name in the certificate is checked, and can be told', async () => {
    const { cert, key } = await authority.issue('named', 'DNS:etcd.test')
    const flags = [`--cert-file=${cert}`, `--key-file=${key}`]
    await using etcd = await EtcdCluster.start(1, flags, 'https')
    const { endpoints } = etcd
    const ca = await readFile(authority.ca)
    await expect(storeOn({ endpoints, tls: { ca } }).start()).rejects.toBeInstanceOf(
      ContentionError,
    )
    await serves(storeOn({ endpoints, tls: { ca, serverName: 'etcd.test' } }))
  })

  test('mutual: the store shows its certificate; without one, or with one of another authority, it is refused', async () => {
    const flags = [...server, '--client-cert-auth', `--trusted-ca-file=${authority.ca}`]
    await using etcd = await EtcdCluster.start(1, flags, 'https')
    const { endpoints } = etcd
    const ca = await readFile(authority.ca)
    const own = await read(await authority.issue('lockd', 'DNS:lockd.test'))
    await serves(storeOn({ endpoints, tls: { ca, ...own } }))
    await expect(storeOn({ endpoints, tls: { ca } }).start()).rejects.toBeInstanceOf(
      ContentionError,
    )
    await using other = await Authority.create()
    const foreign = await read(await other.issue('lockd', 'DNS:lockd.test'))
    const tls = { ca, ...foreign }
    await expect(storeOn({ endpoints, tls }).start()).rejects.toBeInstanceOf(ContentionError)
  })
})

describe('user and password', () => {
  const auth = { user: 'dlock', password: 'correct horse' }
  let etcd: EtcdCluster

  async function etcdctl(...args: string[]): Promise<void> {
    const program = await debianProgram('etcdctl', 'etcd-client')
    await run(program, [`--endpoints=${etcd.endpoints.join(',')}`, ...args])
  }

  /** How often etcd itself has checked a password. */
  async function signIns(): Promise<number> {
    const metrics = await (await fetch(`http://${etcd.endpoints[0]}/metrics`)).text()
    const [, count = '0'] =
      /grpc_server_handled_total\{grpc_code="OK",grpc_method="Authenticate".* (\d+)$/m.exec(
        metrics,
      ) ?? []
    return Number(count)
  }

  beforeAll(async () => {
    etcd = await EtcdCluster.start()
    await etcdctl('user', 'add', 'root:secret')
    await etcdctl('user', 'grant-role', 'root', 'root')
    await etcdctl('user', 'add', `${auth.user}:${auth.password}`)
    await etcdctl('role', 'add', 'locks')
    await etcdctl('role', 'grant-permission', 'locks', 'readwrite', '/dlock/default/', '--prefix')
    await etcdctl('user', 'grant-role', auth.user, 'locks')
    await etcdctl('auth', 'enable')
  })
  afterAll(() => etcd[Symbol.asyncDispose]())

  test('a user with nothing but its own prefix is served', async () => {
    await serves(storeOn({ endpoints: etcd.endpoints, auth }))
  })

  test('nobody, a wrong password and another namespace are refused, without the password in the words', async () => {
    const { endpoints } = etcd
    const wrong = { ...auth, password: 'hunter2' }
    for (const options of [{}, { auth: wrong }, { auth, namespace: 'other' }]) {
      const refused = storeOn({ endpoints, ...options }).start()
      await expect(refused).rejects.toBeInstanceOf(ContentionError)
      await expect(refused).rejects.not.toThrow(/hunter2|correct horse/)
    }
  })

  test('many calls at once sign in once', async () => {
    const client = new EtcdClient({
      endpoints: etcd.endpoints,
      auth,
      tryMs: 20_000,
      clock: systemClock,
    })
    const before = await signIns()
    const key = Buffer.from('/dlock/default/meta')
    await Promise.all(Array.from({ length: 50 }, () => client.range({ key })))
    expect((await signIns()) - before).toBe(1)
    client.close()
  })

  test('a token that etcd has forgotten costs one more sign-in, and no call', async () => {
    const store = storeOn({ endpoints: etcd.endpoints, auth })
    await store.start()
    const session = await store.openSession('worker', 60_000)
    // Switched off and on again, etcd knows none of the tokens that it gave.
    await etcdctl('--user=root:secret', 'auth', 'disable')
    await etcdctl('auth', 'enable')
    const before = await signIns()
    const granted = await Promise.all(
      ['a', 'b', 'c'].map((key) => store.tryInsert(key, 'worker', session, 60_000)),
    )
    for (const handle of granted) expect(handle).toBeInstanceOf(LockHandle)
    expect((await signIns()) - before).toBe(1)
  })
})

describe('several endpoints', () => {
  test('a store starts though the first one is down', async () => {
    await using etcd = await EtcdCluster.start()
    await serves(storeOn({ endpoints: ['127.0.0.1:1', ...etcd.endpoints] }))
  })

  test('a read goes on to the next member; a write is made once, and the next call goes there', async () => {
    await using etcd = await EtcdCluster.start(3)
    const client = new EtcdClient({
      endpoints: ['127.0.0.1:1', ...etcd.endpoints],
      tryMs: 20_000,
      clock: systemClock,
    })
    const write = () => client.txn({ compare: [], success: [], failure: [] })
    await expect(write()).rejects.toBeInstanceOf(EtcdError)
    expect((await write()).succeeded).toBe(true)
    await etcd.member(0).kill()
    expect((await client.range({ key: Buffer.from('x') })).items).toEqual([])
    client.close()
  })
})
