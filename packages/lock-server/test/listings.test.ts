import { listings, type Operation } from '@dlock/protocol'
import { expect, test } from 'vitest'
import { callers, openSession } from './callers.ts'
import { type Served, send, serve } from './serve.ts'

async function all(served: Served, name: keyof typeof listings, query = ''): Promise<unknown[]> {
  const operation = listings[name] as Operation<unknown, { items: unknown[]; nextCursor?: string }>
  const items: unknown[] = []
  let cursor: string | undefined
  do {
    const at = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const reply = await send(served, { path: `${operation.path}?limit=2${query}${at}` })
    expect(reply.status).toBe(200)
    const page: unknown = JSON.parse(reply.text)
    expect(operation.output.faults(page)).toEqual([])
    if (!operation.output.accepts(page)) break
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return items
}

test('L9, P-02: locks by exact prefix, in pages', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const sessionId = await openSession(caller)
  const keys = ['jo', 'job', 'job/', 'job/1', 'job%2F1', 'job2', 'каталог']
  for (const key of keys) await caller.call('acquire', { key, sessionId })
  const listed = async (prefix: string): Promise<string[]> => {
    const items = await all(served, 'listLocks', `&prefix=${encodeURIComponent(prefix)}`)
    return items.map((item) => (item as { key: string }).key)
  }
  expect((await listed('')).sort()).toEqual([...keys].sort())
  expect((await listed('job/')).sort()).toEqual(['job/', 'job/1'])
  expect(await listed('job%')).toEqual(['job%2F1'])
  expect(await listed('к')).toEqual(['каталог'])
  expect(await listed('none')).toEqual([])
})

test('L9: a prefix that no key can have is refused by name, whatever the store', async () => {
  const reply = await send(await serve(), { path: '/v1/locks?prefix=a%00' })
  expect([reply.status, JSON.parse(reply.text)]).toMatchObject([
    400,
    { code: 'VALIDATION_FAILED', details: { fields: [{ field: 'prefix' }] } },
  ])
})

test('L9: sessions, without their ids, and revocations', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const sessionIds = [
    await openSession(caller),
    await openSession(caller),
    await openSession(caller),
  ]
  const by = { operator: 'ops', reason: 'holder is stuck' }
  for (const [index, sessionId] of sessionIds.entries()) {
    await caller.call('acquire', { key: `k${index}`, sessionId })
    await caller.call('revoke', { key: `k${index}`, ...by })
  }
  const sessions = await all(served, 'listSessions')
  expect(sessions).toHaveLength(3)
  for (const sessionId of sessionIds) expect(JSON.stringify(sessions)).not.toContain(sessionId)
  expect(await all(served, 'listRevocations')).toEqual(
    [0, 1, 2].map((index) => expect.objectContaining({ key: `k${index}`, ...by })),
  )
})
