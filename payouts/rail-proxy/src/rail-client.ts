import { type Forwarded, type PresentationLimits, presentOnce } from '@dlock/guard'
import type { RailSubmission, RailTransfer } from '@dlock/messages'
import type { Clock } from '@dlock/system'

/** What the proxy asks the rail, and how it reads the answers. */
export interface RailClient {
  /** Presents a payout once. Only a definite answer is one; anything else is unknown. */
  readonly submit: (submission: RailSubmission) => Promise<Forwarded<string>>
  /** The rail's look-up of a payout; `undefined` when it does not answer. */
  readonly transfers: (payoutId: string) => Promise<readonly RailTransfer[] | undefined>
}

export function railClient(
  railUrl: string,
  limits: Pick<PresentationLimits, 'connectTimeoutMs' | 'readTimeoutMs'>,
  clock: Clock,
): RailClient {
  const bounded = { ...limits, maxReplyBytes: 65_536 }
  return {
    submit: async ({ payoutId, amountMinor, currency }) => {
      const presented = await presentOnce(
        {
          url: new URL('/submit', railUrl),
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: Buffer.from(JSON.stringify({ clientRef: payoutId, amountMinor, currency })),
        },
        bounded,
        clock,
      )
      if (presented.kind !== 'answered') return presented
      const { status, body } = presented.reply
      const said = parsed(body)
      if (status === 422 && said?.declined === true) return { kind: 'rejected', reply: 'declined' }
      const reference = said?.railReference
      if (status === 200 && typeof reference === 'string' && said?.clientRef === payoutId) {
        return { kind: 'acked', reference, reply: reference }
      }
      return { kind: 'unknown', why: `status ${status} that is no answer of the rail's` }
    },
    transfers: async (payoutId) => {
      const url = new URL('/transfers', railUrl)
      url.searchParams.set('clientRef', payoutId)
      const presentation = { url, method: 'GET', headers: {}, body: Buffer.alloc(0) }
      const presented = await presentOnce(presentation, bounded, clock)
      if (presented.kind !== 'answered' || presented.reply.status !== 200) return undefined
      return parsed(presented.reply.body)?.transfers
    },
  }
}

interface RailAnswer {
  readonly declined?: unknown
  readonly railReference?: unknown
  readonly clientRef?: unknown
  readonly transfers?: readonly RailTransfer[]
}

function parsed(body: Buffer): RailAnswer | undefined {
  try {
    return JSON.parse(body.toString()) as RailAnswer
  } catch {
    return undefined
  }
}
