import { ContentionError, LockHandle, SessionDeadError } from '@dlock/lock-api'
import { type HeartbeatInput, MAX_BODY_BYTES, MAX_RENEWALS_PER_HEARTBEAT } from '@dlock/protocol'
import { expect, test } from 'vitest'
import type { Channel, WireAnswer, WireCall } from '../src/channel.ts'
import { heartbeatHop } from '../src/hops.ts'
import { WireTransport } from '../src/wire.ts'

const session = { sessionId: 'session', ownerId: 'worker', ttlMs: 15_000 }
const patience = { hop: heartbeatHop, timeoutMs: 1_300 }
const expiresAt = '2026-01-01T00:00:00.000Z'

function channelOf(answer: (call: WireCall) => WireAnswer): Channel & { calls: WireCall[] } {
  const calls: WireCall[] = []
  return {
    calls,
    call: async (call) => {
      calls.push(call)
      return answer(call)
    },
    close: async () => {},
  }
}

function grants(count: number, keyLength = 8) {
  return Array.from({ length: count }, (_, i) => ({
    handle: new LockHandle(
      `${i}`.padStart(keyLength, 'k'),
      'worker',
      'session',
      BigInt(i + 1),
      0n,
      new Date(0),
    ),
    ttlMs: 30_000,
  }))
}

function beatOf({ input }: WireCall): WireAnswer {
  const { sessionId, ttlMillis = 0, renew = [] } = input as HeartbeatInput
  const renewed = renew.map((grant) => ({ ...grant, expiresAt }))
  return { out: { sessionId, ttlMillis, expiresAt, serverTime: expiresAt, renewed, lost: [] } }
}

test.each([
  [0, 8],
  [1_000, 8],
  [2_500, 8],
  [500, 512],
])(
  'a heartbeat of %i locks with keys of %i is as few requests as fit the limits',
  async (count, keyLength) => {
    const channel = channelOf(beatOf)
    const answer = await new WireTransport(channel).heartbeat(
      session,
      grants(count, keyLength),
      patience,
    )
    expect(answer.renewed).toHaveLength(count)
    expect(new Set(answer.renewed.map(({ key }) => key)).size).toBe(count)
    for (const { input } of channel.calls) {
      expect((input as HeartbeatInput).renew?.length).toBeLessThanOrEqual(
        MAX_RENEWALS_PER_HEARTBEAT,
      )
      expect(Buffer.byteLength(JSON.stringify(input))).toBeLessThanOrEqual(MAX_BODY_BYTES)
    }
    const least = Math.max(Math.ceil(count / MAX_RENEWALS_PER_HEARTBEAT), 1)
    expect(channel.calls.length).toBeLessThanOrEqual(least * 6)
  },
)

test('of several requests of one heartbeat, one that fails leaves its own part unknown', async () => {
  let requests = 0
  const channel = channelOf((call) => {
    if (++requests === 2) throw new ContentionError('lost')
    return beatOf(call)
  })
  const answer = await new WireTransport(channel).heartbeat(session, grants(2_000), patience)
  expect(answer.renewed.length).toBeGreaterThan(0)
  expect(answer.renewed.length).toBeLessThan(2_000)
  expect(answer.lost).toEqual([])
})

test('of several requests of one heartbeat, one that says "dead" is right about all', async () => {
  let requests = 0
  const channel = channelOf((call) => {
    const error = {
      code: 'SESSION_EXPIRED',
      message: '',
      retrySafe: false,
      traceId: '0'.repeat(32),
    } as const
    return ++requests === 2 ? { error } : beatOf(call)
  })
  const beating = new WireTransport(channel).heartbeat(session, grants(2_000), patience)
  await expect(beating).rejects.toThrow(SessionDeadError)
})

test('an answer that is not of the protocol says nothing: it may have happened', async () => {
  const channel = channelOf(() => ({ out: { fencingToken: 7 } }))
  const [grant] = grants(1)
  if (grant === undefined) throw new Error('no grant')
  const transport = new WireTransport(channel)
  const signal = new AbortController().signal
  const request = { key: 'k', ttlMs: 1, waitMs: 0, timeoutMs: 1, signal }
  await expect(transport.acquire(session, request)).rejects.toThrow(ContentionError)
  await expect(transport.inspect('k')).rejects.toThrow('may have happened')
})
