import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { debianProgram, EtcdCluster } from '@dlock/services'
import { EtcdStore } from '@dlock/store-etcd'
import { expect, test } from 'vitest'
import { whyUnsafe } from '../src/safe-version.ts'

test.each(['2.3.8', '3.3.27', '3.4.23', '3.4.41', '3.5.27', '3.6.8', '3.6.0-rc.1'])(
  '%s is warned of',
  (version) => {
    expect(whyUnsafe(version)).toContain(`etcd ${version} has known faults`)
  },
)

test.each(['3.4.42', '3.5.28', '3.5.30', '3.6.9', '3.7.0', '4.0.0'])('%s is not', (version) => {
  expect(whyUnsafe(version)).toBeUndefined()
})

test('the store warns when it starts, of the version that it meets', async () => {
  await using etcd = await EtcdCluster.start()
  const warnings: string[] = []
  const store = new EtcdStore({
    endpoints: etcd.endpoints,
    tryMs: 20_000,
    onWarning: (warning) => warnings.push(warning),
  })
  await store.start()
  store.close()
  const { stdout } = await promisify(execFile)(await debianProgram('etcd', 'etcd-server'), [
    '--version',
  ])
  const [, version = ''] = /etcd Version: (\S+)/.exec(stdout) ?? []
  expect(warnings).toEqual([whyUnsafe(version)].filter((warning) => warning !== undefined))
})
