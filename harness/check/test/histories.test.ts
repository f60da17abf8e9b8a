import { readFile } from 'node:fs/promises'
import { formatHistory, type History, parseHistory } from '@dlock/model'
import { MemoryStore } from '@dlock/store-memory'
import { expect, test } from 'vitest'
import { check, checkText, describeVerdict, picture } from '../src/index.ts'
import { brokenStores } from './broken-stores.ts'
import { atBareStore, atTwoEngines } from './services.ts'

/** What is committed in `histories/`. */
function path(name: string): string {
  return new URL(`../histories/${name}`, import.meta.url).pathname
}

test('known-good: two engines under lost answers, as recorded once', async () => {
  const text = await readFile(path('known-good.ndjson'), 'utf8')
  expect(formatHistory(parseHistory(text))).toBe(text)
  expect(checkText(text).kind).toBe('linearizable')
})

test('the same seed gives the same bytes, another seed others', async () => {
  const [first, again, other] = await Promise.all(
    [7, 7, 8].map(async (seed) =>
      formatHistory(await atTwoEngines((clock) => new MemoryStore({ clock }), seed)),
    ),
  )
  expect(again).toBe(first)
  expect(other).not.toBe(first)
})

test('known-bad: one gets the key while another renews it and releases it', async () => {
  const verdict = checkText(await readFile(path('known-bad.ndjson'), 'utf8'))
  expect(describeVerdict(verdict)).toContain('#2 bob acquire → token 2')
  expect(verdict.kind).toBe('impossible')
})

/** The file is made again and compared: its seed still finds the bug. */
test('a renewal that resurrects: the history of a broken store, and its picture', async () => {
  const history = await resurrected()
  await expect(formatHistory(history)).toMatchFileSnapshot(path('extend-resurrects.ndjson'))
  const verdict = check(history)
  expect(verdict.kind).toBe('impossible')
  await expect(picture(history, verdict)).toMatchFileSnapshot(path('extend-resurrects.html'))
})

test('the picture needs no other file, marks the counterexample, and escapes names', async () => {
  const history = parseHistory(await readFile(path('known-bad.ndjson'), 'utf8'))
  const named = { ...history, header: { ...history.header, key: '<b>&"' } }
  const html = picture(named, check(named))
  expect(html).not.toMatch(/<link|<script|src=|href=|url\(|@import/)
  expect(html.match(/class="stuck"/g)).toHaveLength(1)
  expect(html).toContain('&lt;b&gt;&amp;&quot;')
  expect(html).not.toContain('<b>')
})

/** The first seed at which the store that prolongs what is over is found out. */
async function resurrected(): Promise<History> {
  const store = brokenStores.find(({ name }) => name === 'ExtendResurrectsExpired')
  if (store === undefined) throw new Error('nothing resurrects')
  for (let seed = 1; seed <= 50; seed += 1) {
    const history = await atBareStore(store, seed, { clients: 3, faults: 0 })
    if (check(history).kind === 'impossible') return history
  }
  throw new Error('no seed finds it')
}
