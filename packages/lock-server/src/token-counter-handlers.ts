import type { TokenCapability } from '@dlock/lock-api'
import { Failure, formatFencingToken, parseFencingToken, type TokenCounter } from '@dlock/protocol'
import { type Desk, type Handlers, note } from './handlers.ts'
import { invalid } from './invalid.ts'

export function tokenCounterHandlers(
  desk: Desk,
): Handlers<'readTokenCounter' | 'advanceTokenCounter'> {
  return {
    readTokenCounter: {
      role: 'operator',
      answer: async () => counterAt(await counter(desk).highestToken()),
    },
    advanceTokenCounter: {
      role: 'operator',
      async answer(context, { above }) {
        const floor = parseFencingToken(above)
        if (floor === undefined) throw new TypeError('the schema lets tokens through only')
        const highest = await counter(desk)
          .advanceTokens(floor)
          .catch((error: unknown) => {
            if (!(error instanceof RangeError)) throw error
            throw invalid([{ field: 'above', message: 'leaves no token to issue' }])
          })
        note(desk, context, 'tokens_advanced', { above, ...counterAt(highest) })
        return counterAt(highest)
      },
    },
  }
}

function counter({ engine }: Desk): TokenCapability {
  if (engine.tokens !== undefined) return engine.tokens
  throw new Failure('NOT_FOUND', `the store, ${engine.backendId}, does not show its token counter`)
}

function counterAt(highest: bigint): TokenCounter {
  return highest === 0n ? {} : { highestToken: formatFencingToken(highest) }
}
