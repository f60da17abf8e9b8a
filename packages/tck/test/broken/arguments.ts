import { type BrokenStore, OnClock } from './broken-store.ts'

/** Keys pass through something on their way: a column that is too narrow, a file name, a slug. */
abstract class ChangesKeys extends OnClock {
  protected abstract change(key: string): string

  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    return super.tryInsert(this.change(key), ownerId, sessionId, ttlMs)
  }

  override async extend(key: string, fencingToken: bigint, ttlMs: number) {
    return super.extend(this.change(key), fencingToken, ttlMs)
  }

  override async deleteIfOwner(key: string, fencingToken: bigint) {
    return super.deleteIfOwner(this.change(key), fencingToken)
  }

  override async read(key: string) {
    return super.read(this.change(key))
  }

  override async revoke(key: string, operator: string, reason: string) {
    return super.revoke(this.change(key), operator, reason)
  }
}

class KeysAreCut extends ChangesKeys {
  protected change(key: string): string {
    return typeof key === 'string' && key.length === 512 ? key.slice(0, 255) : key
  }
}

class KeysAreNormalised extends ChangesKeys {
  protected change(key: string): string {
    return typeof key === 'string' ? key.normalize() : key
  }
}

class KeysAreDecoded extends ChangesKeys {
  protected change(key: string): string {
    return typeof key === 'string' ? key.replaceAll('%2F', '/') : key
  }
}

class KeysAreFolded extends ChangesKeys {
  protected change(key: string): string {
    return typeof key === 'string' ? key.toLowerCase() : key
  }
}

class BadTtlsAreMended extends OnClock {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    const mended = Math.max(1, Math.trunc(Number(ttlMs)) || 1)
    return super.tryInsert(key, ownerId, sessionId, Math.min(mended, 31_536_000_000))
  }
}

/** Throws where it should reject: `.catch()` never sees it. */
class BadArgumentsThrow extends OnClock {
  override read(key: string) {
    if (typeof key !== 'string' || key.trim() === '') throw new RangeError('key must not be blank')
    return super.read(key)
  }
}

export const argumentsBroken: readonly BrokenStore[] = [
  {
    store: KeysAreCut,
    fails: ['P-02: keys that are prefixes or look-alikes of one another are independent locks'],
  },
  {
    store: KeysAreNormalised,
    fails: ['P-02: keys that are prefixes or look-alikes of one another are independent locks'],
  },
  {
    store: KeysAreDecoded,
    fails: ['P-02: keys that are prefixes or look-alikes of one another are independent locks'],
  },
  {
    store: KeysAreFolded,
    fails: ['P-02: keys that are prefixes or look-alikes of one another are independent locks'],
  },
  {
    store: BadTtlsAreMended,
    fails: ['P-14: a TTL that is no whole number of milliseconds in range is rejected by type'],
  },
  {
    store: BadArgumentsThrow,
    fails: ['P-02: a key that is empty, too long or not text is rejected by type'],
  },
]
