import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock } from '@dlock/system'
import { expect, onTestFinished, test } from 'vitest'
import { main } from '../src/index.ts'
import { type Served, serve } from './serve.ts'

interface Said {
  readonly code: number
  readonly out: string
}

async function revoke(served: Served, ...more: string[]): Promise<Said> {
  const out: string[] = []
  const args = ['revoke', 'k', '--reason', 'the holder is stuck', '--url', served.url, ...more]
  const code = await main(args, {
    env: {},
    clock: systemClock,
    out: (text) => out.push(text),
    err: (text) => out.push(text),
    onSignal: () => () => false,
  })
  return { code, out: out.join('\n') }
}

/** A guard's `advance`, which answers as it is told to, and what it was asked. */
async function guard(status: number, answer: unknown): Promise<{ url: string; asked: unknown[] }> {
  const asked: unknown[] = []
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (part: Buffer) => {
      body += part.toString()
    })
    req.on('end', () => {
      asked.push({ path: req.url, owner: req.headers['x-owner-id'], body: JSON.parse(body) })
      res.writeHead(status).end(JSON.stringify(answer))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1/fences/k/advance`, asked }
}

async function held(): Promise<Served> {
  const served = await serve()
  const sessionId = await served.engine.openSession('worker-7', 60_000)
  await served.engine.forSession(sessionId).tryAcquire('k', 'worker-7', 60_000)
  return served
}

test('decision 5: revoke --push tells each guard the floor, and says which acknowledged', async () => {
  const served = await held()
  const first = await guard(200, { accountId: 'k', fence: '9000' })
  const second = await guard(200, { fence: '9001' })
  const pushes = ['--push', first.url, '--push', second.url, '--operator', 'ann']
  const { code, out } = await revoke(served, ...pushes)
  expect(code).toBe(0)
  expect(out).toContain(`Fenced: ${first.url}\nFenced: ${second.url}`)
  const floor = /Every later token is above (\d+)\./.exec(out)?.[1]
  const asked = { path: '/v1/fences/k/advance', owner: 'ann', body: { floor } }
  expect([first.asked, second.asked]).toEqual([[asked], [asked]])
})

test('a guard that refuses, says too little, or is away is named as not fenced, and the code is 1', async () => {
  const served = await held()
  const refusing = await guard(500, { error: 'no' })
  const lower = await guard(200, { fence: '0' })
  const away = 'http://127.0.0.1:9/advance'
  const pushes = [refusing.url, lower.url, away].flatMap((url) => ['--push', url])
  const { code, out } = await revoke(served, ...pushes)
  expect(code).toBe(1)
  for (const url of [refusing.url, lower.url, away]) expect(out).toContain(`NOT FENCED: ${url}`)
  expect(out).toContain('Revoked "k"')
})

test('P-28: the floor that is pushed is the revocation’s own, which every later token exceeds', async () => {
  const served = await held()
  const told = await guard(200, { fence: '9000' })
  const { out } = await revoke(served, '--push', told.url, '--json')
  const { newTokenFloor, pushed } = JSON.parse(out) as { newTokenFloor: string; pushed: unknown }
  expect(told.asked).toMatchObject([{ body: { floor: newTokenFloor } }])
  expect(pushed).toEqual([{ url: told.url, acknowledged: true }])
  const sessionId = await served.engine.openSession('worker-8', 60_000)
  const next = await served.engine.forSession(sessionId).tryAcquire('k', 'worker-8', 60_000)
  expect(next?.fencingToken).toBeGreaterThan(BigInt(newTokenFloor))
})
