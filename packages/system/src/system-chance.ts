import { randomBytes } from 'node:crypto'
import type { Ids, Random } from './clock.ts'

/** This process's own chance. */
export const systemRandom: Random = { next: () => Math.random() }

/** Names from the operating system's secure source. */
export const systemIds: Ids = {
  uuid: () =>
    randomBytes(16)
      .toString('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
}
