/**
 * `text` as one segment of a path: everything but unreserved characters is percent-encoded, the
 * slash too.
 *
 * The keys "." and ".." become `%2E` and `%2E%2E`, which servers take as they are but which URL
 * parsers (`fetch`, `new URL`, `curl` without `--path-as-is`) fold away: send the path of such a
 * key verbatim, as `node:http` does, or use the multiplexed connection, which has no paths.
 */
export function encodePathSegment(text: string): string {
  const encoded = encodeURIComponent(text)
  return encoded === '.' || encoded === '..' ? encoded.replaceAll('.', '%2E') : encoded
}

/** The text of a segment, or `undefined` when its percent-encoding is not that of UTF-8. */
export function decodePathSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
