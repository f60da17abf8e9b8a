import { type History, parseHistory } from '@dlock/model'
import { Malformed, operationsOf } from './operations.ts'
import { type Found, search } from './search.ts'

/** A search's answer, or `malformed`: the history breaks what a search takes for granted. */
export type Verdict = Found | { readonly kind: 'malformed'; readonly problems: readonly string[] }

/**
 * Could a correct lock have produced this history? First the history itself is checked
 * (`operations.ts`), then an order of its calls is looked for (`search.ts`).
 *
 * @param maxNodes how many places the search may visit before it says `undecided`
 */
export function check({ events }: History, maxNodes?: number): Verdict {
  try {
    return search(operationsOf(events), maxNodes)
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'malformed', problems: error.problems }
    throw error
  }
}

/** As `check`, of a file's text. A line that cannot be read makes the history malformed. */
export function checkText(text: string, maxNodes?: number): Verdict {
  try {
    return check(parseHistory(text), maxNodes)
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: 'malformed', problems: [error.message] }
    throw error
  }
}
