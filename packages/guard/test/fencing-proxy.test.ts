import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { errorEnvelope } from '@dlock/protocol'
import { createTestDatabase, type TestDatabase } from '@dlock/services'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startFencingProxy } from '../src/program.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** An API that cannot compare tokens, behind the proxy. */
async function proxied(behind: RequestListener): Promise<{ url: string; lines: string[] }> {
  const upstream: Server = createServer(behind)
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const lines: string[] = []
  const proxy = await startFencingProxy({
    argv: [
      `--upstream=http://127.0.0.1:${(upstream.address() as AddressInfo).port}/base`,
      '--port=0',
      '--read-timeout-ms=300',
    ],
    env: { FENCING_PROXY_DATABASE: database.url },
    openPool: (connectionString) => new pg.Pool({ connectionString }),
    log: (line) => lines.push(line),
  })
  cleanUps.push(() => proxy.close())
  return { url: proxy.url, lines }
}

let last = 0
function headers(token: string, about: { key?: string; effect?: string } = {}) {
  last += 1
  return {
    'X-Lock-Key': about.key ?? `key-${last}`,
    'X-Fencing-Token': token,
    'X-Owner-Id': 'worker-7',
    'X-Idempotency-Key': about.effect ?? `effect-${last}`,
  }
}

const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code

const post = (url: string, about: Record<string, string>, path = '/things?x=1') =>
  fetch(url + path, { method: 'POST', headers: about, body: 'hello' })

test('reads pass, a guarded request is forwarded as it came, and its reply handed back', async () => {
  const seen: string[] = []
  const { url, lines } = await proxied((req, res) => {
    let body = ''
    req.on('data', (part: Buffer) => {
      body += part.toString()
    })
    req.on('end', () => {
      seen.push(`${String(req.method)} ${String(req.url)} ${body}`)
      res.writeHead(req.method === 'GET' ? 200 : 201, { 'x-made': 'yes' })
      res.end('made')
    })
  })
  expect(await (await fetch(`${url}/things`)).text()).toBe('made')
  const made = await post(url, headers('7'))
  expect([made.status, made.headers.get('x-made'), await made.text()]).toEqual([201, 'yes', 'made'])
  expect(seen).toEqual(['GET /base/things ', 'POST /base/things?x=1 hello'])
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { event: 'forwarded', level: 'info', outcome: 'acked', ownerId: 'worker-7', token: '7' },
  ])
})

test('a stale token and a repeated effect do not reach the API', async () => {
  let requests = 0
  const { url } = await proxied((_, res) => {
    requests += 1
    res.end()
  })
  const about = { key: 'k1', effect: 'e1' }
  expect((await post(url, headers('7', about))).status).toBe(200)
  const stale = await post(url, headers('6', { key: 'k1' }))
  expect(stale.status).toBe(409)
  const envelope = await stale.json()
  expect(errorEnvelope.faults(envelope)).toEqual([])
  expect(envelope).toMatchObject({
    code: 'FENCED_OUT',
    details: { presentedToken: '6', highestToken: '7', resourceId: 'k1', ownerId: 'worker-7' },
  })
  const again = await post(url, headers('8', about))
  expect(await again.json()).toMatchObject({
    code: 'DUPLICATE_SUBMISSION',
    details: { earlier: { outcome: 'ACKED', fencingToken: '7' } },
  })
  expect(requests).toBe(1)
})

test('silence and 5xx are unknown, 409 for ever after, and recorded', async () => {
  let requests = 0
  const { url } = await proxied((req, res) => {
    requests += 1
    if (req.headers['x-idempotency-key'] === 'e-503') res.writeHead(503).end()
  })
  for (const effect of ['e-silent', 'e-503']) {
    const unknown = await post(url, headers('7', { effect }))
    expect([unknown.status, await codeOf(unknown)]).toEqual([409, 'RAIL_AMBIGUOUS'])
    const later = await post(url, headers('8', { effect }))
    expect([later.status, await codeOf(later)]).toEqual([409, 'DUPLICATE_SUBMISSION'])
    const record = await (await fetch(`${url}/-/attempts?idempotencyKey=${effect}`)).json()
    const attempts = [{ outcome: 'TIMEOUT' }, { outcome: 'DUPLICATE' }]
    expect(record).toMatchObject({ attempts })
  }
  expect(requests).toBe(2)
})

test('a refusal of the API’s own is handed back; 429 proves nothing', async () => {
  const { url } = await proxied((req, res) => {
    res.writeHead(Number(req.headers['x-want'])).end('no')
  })
  expect((await post(url, { ...headers('7'), 'x-want': '422' })).status).toBe(422)
  expect((await post(url, { ...headers('7'), 'x-want': '429' })).status).toBe(409)
})

test('a pushed floor closes the key to older tokens', async () => {
  const { url } = await proxied((_, res) => res.end())
  const push = (floor: unknown) =>
    fetch(`${url}/-/fences/k%2F2/advance`, { method: 'POST', body: JSON.stringify({ floor }) })
  expect(await (await push('41')).json()).toEqual({ fence: '41' })
  expect(await (await post(url, headers('41', { key: 'k/2' }))).json()).toMatchObject({
    code: 'FENCED_OUT',
  })
  expect((await post(url, headers('42', { key: 'k/2' }))).status).toBe(200)
  for (const bad of [41, '-1', '', undefined, '9223372036854775807']) {
    expect(await codeOf(await push(bad))).toBe('VALIDATION_FAILED')
  }
})

/** `fetch` would join them. */
function statusOfRepeated(url: string, name: string): Promise<number | undefined> {
  const sent = Object.entries({ ...headers('7') }).map(([each, value]) =>
    each === name ? [each, [value, value]] : [each, value],
  )
  return new Promise((resolve, reject) => {
    const req = request(`${url}/x`, { method: 'POST', headers: Object.fromEntries(sent) })
    req.on('error', reject)
    req.on('response', (res) => {
      res.resume()
      resolve(res.statusCode)
    })
    req.end()
  })
}

test('bad requests get the envelope and never reach the API', async () => {
  let requests = 0
  const { url } = await proxied((_, res) => {
    requests += 1
    res.end()
  })
  for (const missing of Object.keys(headers('7'))) {
    const incomplete: Record<string, string> = headers('7')
    delete incomplete[missing]
    const refused = await post(url, incomplete)
    const envelope = await refused.json()
    expect(errorEnvelope.faults(envelope)).toEqual([])
    expect(refused.status).toBe(400)
    expect(envelope).toMatchObject({ message: expect.stringContaining(missing) })
  }
  expect(await codeOf(await post(url, headers('07')))).toBe('INVALID_TOKEN')
  expect(await statusOfRepeated(url, 'X-Lock-Key')).toBe(400)
  expect(await statusOfRepeated(url, 'X-Idempotency-Key')).toBe(400)
  expect((await fetch(`${url}/-/nothing`)).status).toBe(404)
  expect(requests).toBe(0)
})

test('with nothing behind, nothing was presented, and a later grant may try again', async () => {
  const { url } = await proxied((_, res) => res.end())
  await cleanUps[0]?.()
  const refused = await post(url, headers('7', { key: 'k3', effect: 'e3' }))
  expect([refused.status, await codeOf(refused)]).toEqual([503, 'RAIL_UNAVAILABLE'])
})

test('a request’s path cannot choose another host', async () => {
  const { url } = await proxied((req, res) => res.end(req.url))
  const reply = await post(url, headers('7'), '//example.invalid/x')
  expect([reply.status, await reply.text()]).toEqual([200, '/base//example.invalid/x'])
})

test('every mistake of the command line is named at once, and no password', async () => {
  const start = startFencingProxy({
    argv: ['--upstream', 'ftp://x', '--port', 'x', '--host', '0.0.0.0'],
    env: { FENCING_PROXY_DATABASE: 'mysql://u:secret@h/d' },
    openPool: () => {
      throw new Error('not reached')
    },
    log: () => undefined,
  })
  const { message } = await start.then(
    () => new Error('started'),
    (error: Error) => error,
  )
  for (const part of ['--upstream', '--database', '--port', '--insecure']) {
    expect(message).toContain(part)
  }
  expect(message).not.toContain('secret')
})

test('the program runs and stops on SIGTERM', async () => {
  const program = fileURLToPath(new URL('../bin/fencing-proxy.js', import.meta.url))
  const child: ChildProcess = spawn(
    process.execPath,
    [program, '--upstream', 'http://127.0.0.1:9', '--port', '0'],
    { env: { ...process.env, FENCING_PROXY_DATABASE: database.url }, stdio: ['ignore', 'pipe', 2] },
  )
  cleanUps.push(() => child.kill('SIGKILL'))
  const first = await new Promise<string>((resolve) => child.stdout?.once('data', resolve))
  const { url } = JSON.parse(String(first)) as { url: string }
  expect(await (await fetch(`${url}/-/readyz`)).json()).toEqual({ status: 'ok' })
  const exited = new Promise((resolve) => child.once('exit', (code) => resolve(code)))
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})
