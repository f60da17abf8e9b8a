/**
 * Where everything lives, under one prefix. A lock's key comes last, or is ended by a NUL, which no
 * key may hold: so keys that are prefixes of one another stay apart, a range over a prefix is
 * exact, and etcd's order is that of the keys' bytes.
 *
 * | Key | On the lease | What |
 * |---|---|---|
 * | `s/<sid>` | slot | session marker: the session lives while it exists |
 * | `c/<sid>` | carrier | the session's record: it outlives the marker until the carrier is revoked |
 * | `k/<key>␀l` | carrier of the holder | the lock, written once per grant |
 * | `k/<key>␀t` | slot | TTL marker: the lease runs while it exists |
 * | `h/<sid>/<key>` | carrier of the holder | index of a session's locks |
 * | `x/<attempt>` | slot | fence: this attempt, should it arrive late, must not be applied |
 * | `q/<key>␀<ticket>` | slot | a process's place in the queue for the key |
 * | `a/<id>` | none | audit record of a revocation |
 * | `f/<key>` | none | the last revocation's floor, as its revision |
 * | `meta` | none | cluster, epoch and token offset |
 */
export class KeySpace {
  readonly prefix: string

  /** @param namespace not blank, without `/` and control characters */
  constructor(namespace: string) {
    this.prefix = `/dlock/${namespace}/`
  }

  get meta(): string {
    return `${this.prefix}meta`
  }

  session(sessionId: string): string {
    return `${this.prefix}s/${sessionId}`
  }

  sessionRecord(sessionId: string): string {
    return `${this.prefix}c/${sessionId}`
  }

  lock(key: string): string {
    return `${this.locks(key)}\0l`
  }

  ttl(key: string): string {
    return `${this.locks(key)}\0t`
  }

  /** The start of every lock whose key begins with `keyPrefix`. */
  locks(keyPrefix: string): string {
    return `${this.prefix}k/${keyPrefix}`
  }

  held(sessionId: string, key = ''): string {
    return `${this.prefix}h/${sessionId}/${key}`
  }

  fence(attempt: string): string {
    return `${this.prefix}x/${attempt}`
  }

  ticket(key: string, name: string): string {
    return `${this.tickets(key)}${name}`
  }

  /** The start of every ticket for exactly this key. */
  tickets(key: string): string {
    return `${this.prefix}q/${key}\0`
  }

  floor(key: string): string {
    return `${this.prefix}f/${key}`
  }

  audit(id: string): string {
    return `${this.prefix}a/${id}`
  }

  /** What a stored key is, as far as a watch cares. */
  parse(
    stored: string,
  ): { readonly kind: 'lock' | 'ttl' | 'session' | 'ticket'; readonly name: string } | undefined {
    if (!stored.startsWith(this.prefix)) return undefined
    const rest = stored.slice(this.prefix.length)
    if (rest.startsWith('s/')) return { kind: 'session', name: rest.slice(2) }
    if (rest.startsWith('q/')) return { kind: 'ticket', name: rest.slice(2, rest.indexOf('\0')) }
    if (!rest.startsWith('k/')) return undefined
    const name = rest.slice(2, -2)
    if (rest.endsWith('\0l')) return { kind: 'lock', name }
    return rest.endsWith('\0t') ? { kind: 'ttl', name } : undefined
  }
}
