import { invalid, type NewPayout, paymentOperations } from '@dlock/messages'

const HEADER = 'payoutId,accountId,amountMinor,currency,beneficiaryRef'
const MAX_FAULTS = 20

/**
 * A CSV file of payouts, one a line, under exactly this header:
 * `payoutId,accountId,amountMinor,currency,beneficiaryRef`. No field of ours can hold a comma or a
 * quote, so neither has to be quoted, and a line that has one is refused rather than guessed at.
 *
 * @throws Failure `VALIDATION_FAILED` that names the faulty lines, at most 20
 */
export function readPayoutFile(text: string, ownerId: string): readonly NewPayout[] {
  const [header, ...lines] = text
    .replace(/^\uFEFF/, '')
    .trimEnd()
    .split(/\r?\n/)
  if (header !== HEADER) throw invalid([{ field: 'line 1', message: `must be ${HEADER}` }])
  const faults: { field: string; message: string }[] = []
  const payouts: NewPayout[] = []
  const seen = new Map<string, number>()
  for (const [i, line] of lines.entries()) {
    // A file of millions of faulty lines is not read to its end.
    if (faults.length >= MAX_FAULTS) break
    const number = i + 2
    const note = (message: string): void => void faults.push({ field: `line ${number}`, message })
    const { payout, more } = fieldsOf(line, ownerId)
    for (const { field, message } of paymentOperations.createPayout.input.faults(payout)) {
      note(`${field} ${message}`)
    }
    if (more.length > 0) note('the line has more than 5 fields')
    const first = seen.get(payout.payoutId)
    if (first !== undefined) note(`payoutId is that of line ${first}`)
    seen.set(payout.payoutId, first ?? number)
    payouts.push(payout)
  }
  if (faults.length > 0) throw invalid(faults.slice(0, MAX_FAULTS))
  return payouts
}

function fieldsOf(line: string, ownerId: string): { payout: NewPayout; more: readonly string[] } {
  const [payoutId = '', accountId = '', amount = '', currency = '', beneficiaryRef = '', ...more] =
    line.split(',')
  // "1e3" and "007" are numbers to JavaScript and mistakes in a payment file.
  const amountMinor = /^[1-9]\d{0,14}$/.test(amount) ? Number(amount) : Number.NaN
  return { payout: { ownerId, payoutId, accountId, amountMinor, currency, beneficiaryRef }, more }
}
