import { EventEmitter } from 'node:events'
import { ManualClock } from '@dlock/testing'
import { expect, test, vi } from 'vitest'
import { onStopRequest } from '../src/signals.ts'

test('the first signal asks to stop, a second one hurries', async () => {
  const source = new EventEmitter()
  const clock = new ManualClock()
  const hurry = vi.fn()
  const { asked } = onStopRequest(hurry, source, clock)
  source.emit('SIGTERM', 'SIGTERM')
  expect(await asked).toBe('SIGTERM')
  await clock.advance(501)
  expect(hurry).not.toHaveBeenCalled()
  source.emit('SIGINT', 'SIGINT')
  expect(hurry).toHaveBeenCalledOnce()
})

test("npm's copy of a Ctrl-C that came from the terminal already is not a second one", async () => {
  const source = new EventEmitter()
  const clock = new ManualClock()
  const hurry = vi.fn()
  onStopRequest(hurry, source, clock)
  source.emit('SIGINT', 'SIGINT')
  await clock.advance(20)
  source.emit('SIGINT', 'SIGINT')
  expect(hurry).not.toHaveBeenCalled()
})
