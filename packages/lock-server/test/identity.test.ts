import { describe, expect, test } from 'vitest'
import type { Identity, Role } from '../src/index.ts'
import { callers, connect, openSession } from './callers.ts'
import { envelopeIn, send, serve } from './serve.ts'

const as = (role: Role, name?: string) => ({
  authenticate: async (): Promise<Identity> => ({ name, role }),
})
const nobody = { authenticate: async () => undefined }
const by = { operator: 'alice', reason: 'holder is stuck' }

describe('the seam of authentication', () => {
  test('it is asked for each request, and once for a connection', async () => {
    const asked: string[] = []
    const served = await serve({
      authenticate: async ({ headers, url }) => {
        asked.push(`${url} ${headers.authorization ?? '-'}`)
        return { name: undefined, role: 'operator' }
      },
    })
    await send(served, { path: '/v1/locks/k', headers: { Authorization: 'Bearer a' } })
    const connection = await connect(served)
    await connection.ask('inspect', { key: 'k' })
    await connection.ask('inspect', { key: 'k' })
    expect(asked).toEqual(['/v1/locks/k Bearer a', '/v1/connect -'])
  })

  test('who is not known is UNAUTHENTICATED, on every road', async () => {
    const served = await serve(nobody)
    for (const path of ['/v1/locks/k', '/v1/locks', '/v1/events']) {
      const reply = await send(served, { path })
      expect([reply.status, envelopeIn(reply).code]).toEqual([401, 'UNAUTHENTICATED'])
    }
    await expect(connect(served)).rejects.toThrow('401')
  })

  test('a viewer looks and takes no lock; a client locks and revokes none', async () => {
    const viewer = await callers.HTTP(await serve(as('viewer')))
    await viewer.call('inspect', { key: 'k' })
    expect((await viewer.refusal('openSession', { ownerId: 'worker' })).code).toBe('FORBIDDEN')
    const served = await serve(as('client'))
    const client = await callers.HTTP(served)
    await client.call('acquire', { key: 'k', sessionId: await openSession(client) })
    expect((await client.refusal('revoke', { key: 'k', ...by })).code).toBe('FORBIDDEN')
    for (const path of ['/v1/sessions', '/v1/revocations']) {
      expect(envelopeIn(await send(served, { path })).code).toBe('FORBIDDEN')
    }
    expect((await send(served, { path: '/v1/locks' })).status).toBe(200)
  })

  test('an operator who is known by name revokes in that name only', async () => {
    const caller = await callers.HTTP(await serve(as('operator', 'alice')))
    await caller.call('acquire', { key: 'k', sessionId: await openSession(caller) })
    const refusal = await caller.refusal('revoke', { key: 'k', ...by, operator: 'bob' })
    expect(refusal.code).toBe('FORBIDDEN')
    await caller.call('revoke', { key: 'k', ...by })
  })

  test('a seam that fails is an answer too', async () => {
    const served = await serve({
      authenticate: async () => {
        throw new Error('secret of the seam')
      },
    })
    const reply = await send(served, { path: '/v1/locks/k' })
    expect([reply.status, envelopeIn(reply).code]).toEqual([500, 'INTERNAL'])
    expect(reply.text).not.toContain('secret')
    await expect(connect(served)).rejects.toThrow('500')
  })
})
