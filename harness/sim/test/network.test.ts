import { ContentionError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { Chance } from '../src/chance.ts'
import { Journal } from '../src/journal.ts'
import { Machine } from '../src/machine.ts'
import { Network, type Weather } from '../src/network.ts'
import { VirtualTime } from '../src/virtual-time.ts'

const CALM: Weather = { delayMs: 10, loss: 0, duplication: 0, slowness: 0, slowMs: 0 }

/** A client calls a server so often; what was handled, and what was answered. */
async function call(
  weather: Partial<Weather>,
  times: number,
  prepare: (network: Network, client: Machine, server: Machine) => void = () => {},
): Promise<{ handled: number[]; answered: number[]; refused: number }> {
  const time = new VirtualTime()
  const skew = { ratePpm: 0, sinceBootNanos: 0, wallOffMs: 0 }
  const machine = (name: string): Machine => new Machine(name, time, new Chance(1, name), skew)
  const [client, server] = [machine('client'), machine('server')]
  const journal = new Journal(time)
  const network = new Network(time, new Chance(1, 'network'), journal, { ...CALM, ...weather })
  prepare(network, client, server)
  const [handled, answered]: [number[], number[]] = [[], []]
  let refused = 0
  for (let n = 0; n < times; n++) {
    const answer = network.call(client, server, `${n}`, async () => handled.push(n))
    answer.then(
      () => answered.push(n),
      (error: unknown) => (refused += Number(error instanceof ContentionError)),
    )
  }
  await time.run(10_000_000_000, () => false)
  return { handled, answered, refused }
}

test('on a calm day every call is handled and answered once, in whatever order', async () => {
  const { handled, answered } = await call({}, 50)
  expect(handled).not.toEqual([...handled].sort((a, b) => a - b))
  expect([...handled].sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  expect(answered).toHaveLength(50)
})

test('a message that is lost was never there; a lost reply leaves a call that happened', async () => {
  const { handled, answered } = await call({ loss: 0.4 }, 200)
  expect(handled.length).toBeLessThan(200)
  expect(answered.length).toBeLessThan(handled.length)
})

test('a message that is repeated is handled twice and answered once', async () => {
  const { handled, answered } = await call({ duplication: 0.4 }, 100)
  expect(handled.length).toBeGreaterThan(100)
  expect(answered).toHaveLength(100)
})

test('a cut is one way only', async () => {
  const { handled, answered } = await call({}, 20, (network, client, server) =>
    network.cut(server.name, client.name),
  )
  expect(handled).toHaveLength(20)
  expect(answered).toHaveLength(0)
})

test('a machine that is down refuses, or says nothing', async () => {
  const { handled, refused } = await call({}, 40, (_network, _client, server) => server.kill())
  expect(handled).toEqual([])
  expect(refused).toBeGreaterThan(5)
  expect(refused).toBeLessThan(35)
})
