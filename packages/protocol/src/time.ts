/** RFC 3339 in UTC with milliseconds, as in `2026-01-31T12:00:00.000Z`. For people only. */
export function formatTime(instant: Date): string {
  return instant.toISOString()
}

/** The instant that `text` spells in exactly that form, or `undefined`. */
export function parseTime(text: string): Date | undefined {
  if (!TIME_PATTERN.test(text)) return undefined
  const instant = new Date(text)
  return Number.isNaN(instant.getTime()) ? undefined : instant
}

/** Four digits are enough for a year: a lease lasts 365 days at most. */
export const TIME_PATTERN: RegExp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
