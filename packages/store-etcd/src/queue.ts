import { checkKey } from '@dlock/lock-api'
import { EtcdError } from './client/etcd-error.ts'
import {
  type Compare,
  type KeyValue,
  listKeys,
  type Op,
  prefixEnd,
  put,
  remove,
} from './client/txn.ts'
import { type EtcdState, TTL_BOUNDS } from './etcd-state.ts'

/**
 * Processes queue for a key by tickets, `q/<key>␀<ticket>`, one of each process; the order is that
 * of their creation. A grant overtakes nobody (`nobodyBefore`), and gives its process a new ticket
 * in the same step (`takeTurn`), so that who has had a turn stands at the end.
 *
 * A ticket hangs on a slot that its process moves on while it waits, so the tickets of a process
 * that died lapse. One that lapsed too early, or a ticket that outlives its use by a few seconds
 * because an answer was lost, costs fairness or time, never safety: who holds the key is decided as
 * without a queue.
 */
const TICKET_TTL_MS = 4_000
const KEEP_EVERY_NANOS = 1_500n * 1_000_000n

/** How long at most the ticket of a process that died stays in the way, in milliseconds. */
export const TICKET_LEASE_MS: number = TICKET_TTL_MS + TTL_BOUNDS.maxLatenessMs

/** This process's place in the queue for one key. */
export interface Place {
  readonly ticket: string
  /** Orders the tickets; `undefined` while it is not known whether ours is there. */
  createRevision: bigint | undefined
  /** The ticket right before ours; `undefined` when there is none, or it is not known. */
  before: string | undefined
  /** Tickets that went since `before` was asked for: an event may overtake the answer. */
  readonly departed: Set<string>
  keptNanos: bigint | undefined
}

/** Stands behind everybody, or stays where this process stands already. */
export async function join(state: EtcdState, key: string): Promise<void> {
  checkKey(key)
  await state.inTurn(`queue ${key}`, () => joinNow(state, key))
}

async function joinNow(state: EtcdState, key: string): Promise<void> {
  const place = state.places.get(key) ?? newPlace(state, key, state.ids.uuid())
  const now = state.clock.monotonicNanos()
  const { keptNanos } = place
  if (keptNanos !== undefined && now - keptNanos < KEEP_EVERY_NANOS) return
  state.places.set(key, place)
  try {
    await keep(state, key, place, now)
  } finally {
    // A grant used the ticket up, or it was given up, while it was on its way.
    if (state.places.get(key) !== place) await discard(state, key, place)
  }
}

function newPlace(state: EtcdState, key: string, ticket: string): Place {
  return {
    ticket: state.keys.ticket(key, ticket),
    createRevision: undefined,
    before: undefined,
    departed: new Set(),
    keptNanos: undefined,
  }
}

/** Written again, a ticket keeps its place: its creation stays what it was. */
async function keep(state: EtcdState, key: string, place: Place, now: bigint): Promise<void> {
  place.before = undefined
  place.departed.clear()
  const tickets = state.keys.tickets(key)
  try {
    const slot = await state.slots.leaseFor(TICKET_TTL_MS)
    const answer = await state.proposals.submit(
      {
        compare: [],
        success: [put(place.ticket, '', slot), listKeys(tickets, prefixEnd(tickets))],
        failure: [],
      },
      [key],
    )
    const queue = answer.listed(1).toSorted((a, b) => Number(a.createRevision - b.createRevision))
    const position = queue.findIndex((ticket) => ticket.key === place.ticket)
    place.createRevision = queue[position]?.createRevision
    place.before = queue[position - 1]?.key
    place.keptNanos = now
  } catch (error) {
    if (error instanceof EtcdError && error.kind === 'lease-gone') {
      forgetTicketSlot(state)
    }
    throw error
  }
}

/** The lease for the next ticket of a process that stands in the queue. */
export async function ticketSlot(state: EtcdState, key: string): Promise<string | undefined> {
  return state.places.has(key) ? await state.slots.leaseFor(TICKET_TTL_MS) : undefined
}

/** With the grant `name`: this process's ticket goes, and a new one, at the end, comes. */
export function takeTurn(
  state: EtcdState,
  key: string,
  name: string,
  slot: string | undefined,
): Op[] {
  const place = state.places.get(key)
  if (place === undefined || slot === undefined) return []
  return [remove(place.ticket), put(state.keys.ticket(key, name), '', slot)]
}

/** The grant `name` was made, at `revision`. */
export function turnTaken(
  state: EtcdState,
  key: string,
  name: string,
  slot: string | undefined,
  revision: bigint,
): void {
  if (slot === undefined || !state.places.has(key)) return
  state.places.set(key, { ...newPlace(state, key, name), createRevision: revision })
}

export function forgetTicketSlot(state: EtcdState): void {
  state.slots.forget(TICKET_TTL_MS)
}

/** Gives the place up. Never rejects: a ticket that could not be removed lapses. */
export async function leave(state: EtcdState, key: string): Promise<void> {
  await state.inTurn(`queue ${checkKey(key)}`, async () => {
    const place = state.places.get(key)
    if (place === undefined) return
    state.places.delete(key)
    await discard(state, key, place)
  })
}

async function discard(state: EtcdState, key: string, { ticket }: Place): Promise<void> {
  try {
    await state.proposals.submit({ compare: [], success: [remove(ticket)], failure: [] }, [key])
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error
  }
}

/** A ticket of the key is gone. @returns whether that makes this process the next */
export function departed(state: EtcdState, key: string, ticket: string): boolean {
  const place = state.places.get(key)
  if (place === undefined) return false
  if (ticket === place.ticket) {
    // It lapsed: the next look stands in line again.
    place.createRevision = undefined
    place.keptNanos = undefined
    return false
  }
  place.departed.add(ticket)
  return place.before === undefined || place.before === ticket
}

/** As far as this process knows nobody is before it: it may ask for a key that comes free. */
export function isNext(state: EtcdState, key: string): boolean {
  const before = state.places.get(key)?.before
  return before === undefined || state.places.get(key)?.departed.has(before) === true
}

/**
 * Holds when a grant would overtake nobody. etcd's comparisons of a range hold when they do for
 * every key in it; an empty range is compared as a key that was never created.
 */
export function nobodyBefore(state: EtcdState, key: string): Compare {
  const tickets = state.keys.tickets(key)
  const range = {
    key: Buffer.from(tickets),
    rangeEnd: prefixEnd(tickets),
    target: 'CREATE',
  } as const
  const mine = state.places.get(key)?.createRevision
  return mine === undefined
    ? { ...range, result: 'EQUAL', createRevision: '0' }
    : { ...range, result: 'GREATER', createRevision: String(mine - 1n) }
}

/** By the tickets as they were found: somebody is before this process. */
export function isOthersTurn(state: EtcdState, key: string, tickets: readonly KeyValue[]): boolean {
  const place = state.places.get(key)
  const mine = tickets.find((ticket) => ticket.key === place?.ticket)
  // What was compared with may have been out of date: the ticket lapsed unnoticed, say.
  if (place !== undefined) place.createRevision = mine?.createRevision
  return tickets.some(
    ({ createRevision }) => mine === undefined || createRevision < mine.createRevision,
  )
}
