import { systemClock } from '@dlock/system'
import { expect, test, vi } from 'vitest'
import { ProcessGroup } from '../src/process-group.ts'

vi.mock('node:child_process', async (original) => {
  const real = await original<typeof import('node:child_process')>()
  const spawn = (command: string, args: string[], options: object) =>
    real.spawn(command === '/bin/sh' ? '/no/such/shell' : command, args, options)
  return { ...real, spawn }
})

test('a command that no undertaker can be started for is stopped', async () => {
  const group = new ProcessGroup(['sleep', '600'], process.env, systemClock)
  await expect(group.started).rejects.toThrow(/no undertaker/)
  expect(await group.ended).toBe(128 + 9)
})
