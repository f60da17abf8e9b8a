import { randomUUID } from 'node:crypto'
import type { Ids, Random } from './clock.ts'

/** This process's own chance. */
export const systemRandom: Random = { next: () => Math.random() }

/** Names from the operating system's secure source. */
export const systemIds: Ids = { uuid: () => randomUUID() }
