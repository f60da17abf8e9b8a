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
  const payouts = lines.map((line, i): NewPayout => {
    const [
      payoutId = '',
      accountId = '',
      amount = '',
      currency = '',
      beneficiaryRef = '',
      ...more
    ] = line.split(',')
    // "1e3" and "007" are numbers to JavaScript and mistakes in a payment file.
    const amountMinor = /^[1-9]\d{0,14}$/.test(amount) ? Number(amount) : Number.NaN
    const payout = { ownerId, payoutId, accountId, amountMinor, currency, beneficiaryRef }
    const wrong = paymentOperations.createPayout.input.faults(payout)
    if (more.length > 0) wrong.push({ field: 'the line', message: 'has more than 5 fields' })
    faults.push(
      ...wrong.map(({ field, message }) => ({
        field: `line ${i + 2}`,
        message: `${field} ${message}`,
      })),
    )
    return payout
  })
  const seen = new Map<string, number>()
  payouts.forEach(({ payoutId }, i) => {
    const first = seen.get(payoutId)
    if (first === undefined) seen.set(payoutId, i + 2)
    else faults.push({ field: `line ${i + 2}`, message: `payoutId is that of line ${first}` })
  })
  if (faults.length > 0) throw invalid(faults.slice(0, MAX_FAULTS))
  return payouts
}
