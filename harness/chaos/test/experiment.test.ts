import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLocalPostgres } from '@dlock/local-postgres'
import { expect, test } from 'vitest'
import { MODES, runMode } from '../src/index.ts'
import { startLockd } from '../src/payout-town.ts'

/** `npm run experiment`, once: so that it cannot rot between the days on which somebody looks. */
test.each(['pg', 'etcd'] as const)(
  'INV-02, locks in %s: a holder stopped past its lease pays twice without guards, and is refused with them',
  {
    timeout: 180_000,
  },
  async (backend) => {
    const folder = await mkdtemp(join(tmpdir(), 'experiment-'))
    try {
      await using postgres = await startLocalPostgres({ settings: { max_connections: '300' } })
      await using lockd = await startLockd(postgres, backend)
      const around = { postgres, lockUrl: lockd.url, folder }
      const verdicts = await Promise.all(
        MODES.map(async (mode) => [mode.name, await runMode(mode, around)] as const),
      )
      expect(verdicts.filter(([, { passed }]) => !passed)).toEqual([])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
)
