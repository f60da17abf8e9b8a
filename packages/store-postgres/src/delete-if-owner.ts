import type { Kind } from './coalesce.ts'
import { VACANT } from './live.ts'
import { askStatement } from './statement.ts'
import { ANNOUNCE } from './waiting.ts'

export interface Deletion {
  readonly key: string
  readonly fencingToken: bigint
}

/**
 * Compare-and-delete, where to delete is to leave the row vacant. The row goes later, when nobody
 * can be about to insert an older token in its place (`reap-expired.ts`).
 */
const DELETE_IF_OWNER = askStatement(
  'delete_if_owner',
  { key: 'text', token: 'bigint' },
  (asked) => `
  UPDATE lock_entry AS e SET expires_at = ${VACANT}
  FROM ${asked} AS a
  WHERE e.lock_key = a.key AND e.fencing_token = a.token AND e.expires_at > ${VACANT}
  RETURNING e.lock_key, ${ANNOUNCE}`,
)

export const DELETIONS: Kind<Deletion, boolean> = {
  statement: DELETE_IF_OWNER,
  keyOf: ({ key }) => key,
  row: ({ key, fencingToken }) => [key, String(fencingToken)],
  answers(asks, rows) {
    const freed = new Set(rows.map(([key]) => key))
    return asks.map(({ key }) => freed.has(key))
  },
}
