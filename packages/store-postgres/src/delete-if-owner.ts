import type { Kind } from './coalesce.ts'
import { VACANT } from './live.ts'
import { asked, plainArray, statement, textArray } from './statement.ts'
import { ANNOUNCE } from './waiting.ts'

export interface Deletion {
  readonly key: string
  readonly fencingToken: bigint
}

/**
 * Compare-and-delete, where to delete is to leave the row vacant. The row goes later, when nobody
 * can be about to insert an older token in its place (`reap-expired.ts`).
 */
const DELETE_IF_OWNER = statement(
  'delete_if_owner',
  `
  WITH freed AS (
    UPDATE lock_entry AS e SET expires_at = ${VACANT}
    FROM ${asked({ key: 'text', token: 'bigint' })} AS a
    WHERE e.lock_key = a.key AND e.fencing_token = a.token AND e.expires_at > ${VACANT}
    RETURNING e.lock_key, e.wanted
  )
  SELECT lock_key, ${ANNOUNCE} FROM freed`,
)

export const DELETIONS: Kind<Deletion, boolean> = {
  statement: DELETE_IF_OWNER,
  keyOf: ({ key }) => key,
  parameters: (asks) => [
    textArray(asks.map(({ key }) => key)),
    plainArray(asks.map(({ fencingToken }) => fencingToken)),
  ],
  answers(asks, rows) {
    const freed = new Set(rows.map(([key]) => key))
    return asks.map(({ key }) => freed.has(key))
  },
}
