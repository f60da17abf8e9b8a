import { Failure, type FieldFault } from '@dlock/protocol'

/** What is wrong with a request, in one failure. A token that is none has a code of its own. */
export function invalid(faults: readonly FieldFault[]): Failure {
  const isAboutToken = faults.some(({ field }) => /(^|\.)(fencingToken|expectedToken)$/.test(field))
  const fields = faults.map(({ field }) => field || 'the input').join(', ')
  return isAboutToken
    ? new Failure('INVALID_TOKEN', `not a fencing token, or not there: ${fields}`, {
        details: { fields: faults },
      })
    : new Failure('VALIDATION_FAILED', `not valid: ${fields}`, { details: { fields: faults } })
}
