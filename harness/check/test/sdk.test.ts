import { LockEngine } from '@dlock/engine'
import { ContentionError } from '@dlock/lock-api'
import { LockClient } from '@dlock/lock-client'
import { MemoryStore } from '@dlock/store-memory'
import { systemClock } from '@dlock/system'
import { ScriptedService, seededRandom } from '@dlock/testing'
import { MemoryCell, profiles, run } from '@dlock/traffic'
import { expect, test } from 'vitest'
import { check, describeVerdict } from '../src/index.ts'

const TURNS = 120

test.each(['hot', 'churn'] as const)(
  'the SDK under the load "%s", with answers lost and repeated: linearizable, no violation',
  async (name) => {
    await using engine = new LockEngine({ store: new MemoryStore() })
    await engine.start()
    const random = seededRandom(1)
    const service = new ScriptedService(engine)
    const badly = async <T>(proceed: () => Promise<T>): Promise<T> => {
      const fate = random.next()
      if (fate < 0.05) await proceed() // and once more: a request that was repeated
      const answer = await proceed()
      if (fate > 0.95) throw new ContentionError('the answer was lost')
      return answer
    }
    service.always('acquire', badly)
    service.always('release', badly)
    service.always('heartbeat', badly)
    await using client = new LockClient({ service })
    let turns = 0
    const result = await run({
      profile: { ...profiles[name], clients: 8, key: () => 'k' },
      client,
      cell: new MemoryCell(),
      clock: systemClock,
      random,
      goOn: () => {
        turns += 1
        return turns <= TURNS
      },
      backend: 'memory',
      seed: 1,
    })
    expect(result.detector.described).toEqual([])
    expect(result.histories).toHaveLength(1)
    for (const history of result.histories) {
      expect(describeVerdict(check(history))).toMatch(/^linearizable/)
    }
  },
)
