import { readFile } from 'node:fs/promises'
import { EtcdStore, type EtcdTls } from '@dlock/store-etcd'
import type { Logger } from 'pino'
import type { Configuration } from './settings.ts'
import type { OpenStore } from './stores.ts'

const ON_THIS_MACHINE = ['127.0.0.1:2379']

/** The etcd cluster of `etcd.endpoints`. */
export async function openEtcd(configuration: Configuration, log: Logger): Promise<OpenStore> {
  const { etcdEndpoints: endpoints = ON_THIS_MACHINE, etcdNamespace: namespace = 'default' } =
    configuration
  const keptIn = `etcd at ${endpoints.join(', ')}, namespace ${namespace}`
  let store: EtcdStore | undefined
  try {
    store = new EtcdStore({
      endpoints,
      namespace,
      tls: await tlsOf(configuration),
      auth: authOf(configuration),
      clusterId: configuration.etcdClusterId,
      onWarning: (message) => log.warn({ event: 'store_warning', message }),
    })
    await store.start()
  } catch (error) {
    store?.close()
    throw new Error(`cannot use ${keptIn}: ${(error as Error).message}`)
  }
  const opened = store
  return {
    store: opened,
    keptIn,
    gone: new Promise(() => {}),
    [Symbol.asyncDispose]: async () => opened.close(),
  }
}

async function tlsOf(configuration: Configuration): Promise<EtcdTls | undefined> {
  const { etcdCa, etcdCert, etcdKey, etcdServerName } = configuration
  if (etcdCa === undefined) return undefined
  const [ca, cert, key] = await Promise.all([read(etcdCa), read(etcdCert), read(etcdKey)])
  return ca === undefined ? undefined : { ca, cert, key, serverName: etcdServerName }
}

async function read(path: string | undefined): Promise<Buffer | undefined> {
  return path === undefined ? undefined : await readFile(path)
}

function authOf({
  etcdUser: user,
  etcdPassword: password,
}: Configuration): { readonly user: string; readonly password: string } | undefined {
  return user === undefined || password === undefined ? undefined : { user, password }
}
