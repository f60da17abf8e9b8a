import { errorEnvelope, OWNER_ID_HEADER } from '@dlock/protocol'

/** What one guard said to the floor. Until it has acknowledged, it is not fenced. */
export interface Pushed {
  /** Of the guard's `advance`, without user and password. */
  readonly url: string
  readonly acknowledged: boolean
  /** Why not, for people. */
  readonly why?: string
}

const ANSWER_WITHIN_MS = 5_000

/**
 * Pushes a revocation's floor to the guards' `advance` (decision 5): `POST` of `{ "floor": "…" }`.
 * The number comes from the revocation's own answer and is never made up, so that no guard is told
 * to refuse what the store will mint next (P-28). To push again is harmless: a fence only goes up.
 */
export function pushFloor(
  guards: readonly URL[],
  floor: string,
  operator: string,
): Promise<Pushed[]> {
  return Promise.all(guards.map((guard) => pushTo(guard, floor, operator)))
}

async function pushTo(guard: URL, floor: string, operator: string): Promise<Pushed> {
  const url = `${guard.origin}${guard.pathname}`
  try {
    const response = await fetch(guard, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', [OWNER_ID_HEADER]: operator },
      body: JSON.stringify({ floor }),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    const answer: unknown = await response.json().catch(() => undefined)
    if (response.ok && fenceIn(answer) >= BigInt(floor)) return { url, acknowledged: true }
    if (errorEnvelope.accepts(answer)) return { url, acknowledged: false, why: answer.message }
    const why = `it answered ${response.status}, and not as a guard does`
    return { url, acknowledged: false, why }
  } catch {
    return { url, acknowledged: false, why: 'it did not answer' }
  }
}

/** A guard answers with its fence as it is now; -1 when it does not say. */
function fenceIn(answer: unknown): bigint {
  const fence = (answer as { fence?: unknown } | null | undefined)?.fence
  return typeof fence === 'string' && /^\d{1,19}$/.test(fence) ? BigInt(fence) : -1n
}
