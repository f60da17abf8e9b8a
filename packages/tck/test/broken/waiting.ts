import { type StoreCapabilities } from '@dlock/lock-api'
import { type BrokenStore, OnClock } from './broken-store.ts'

class NothingIsAnnounced extends OnClock {
  override capabilities(): StoreCapabilities {
    const { waiting } = this.all
    return {
      ...this.all,
      waiting: { want: (key) => waiting.want(key), subscribe: async () => async () => {} },
    }
  }
}

/** The mark is set, but whether the grant still lives is not looked at. */
class WantMissesTheRelease extends OnClock {
  override capabilities(): StoreCapabilities {
    const { waiting } = this.all
    return {
      ...this.all,
      waiting: {
        want: async (key) => (await waiting.want(key)) ?? 1_000,
        subscribe: (onFreed, onGap) => waiting.subscribe(onFreed, onGap),
      },
    }
  }
}

class WantIgnoresTheSession extends OnClock {
  override capabilities(): StoreCapabilities {
    const { waiting } = this.all
    return {
      ...this.all,
      waiting: {
        want: async (key) => {
          const waitMs = await waiting.want(key)
          const info = await this.read(key)
          return waitMs && info && info.expiresAt.getTime() - this.clock.now().getTime()
        },
        subscribe: (onFreed, onGap) => waiting.subscribe(onFreed, onGap),
      },
    }
  }
}

/** The channel's payload is the key's first word. */
class AnnouncementsAreCut extends OnClock {
  override capabilities(): StoreCapabilities {
    const { waiting } = this.all
    return {
      ...this.all,
      waiting: {
        want: (key) => waiting.want(key),
        subscribe: (onFreed, onGap) =>
          waiting.subscribe((key) => onFreed(key.split(/\W/)[0] ?? key), onGap),
      },
    }
  }
}

class ListensForEver extends OnClock {
  override capabilities(): StoreCapabilities {
    const { waiting } = this.all
    return {
      ...this.all,
      waiting: {
        want: (key) => waiting.want(key),
        subscribe: async (onFreed, onGap) => {
          await waiting.subscribe(onFreed, onGap)
          return async () => {}
        },
      },
    }
  }
}

export const waitingBroken: readonly BrokenStore[] = [
  {
    store: NothingIsAnnounced,
    fails: [
      'release of a wanted grant is announced to everybody, at every replica',
      'a release at the same time as wanting is not missed: it is said or announced',
    ],
  },
  {
    store: WantMissesTheRelease,
    fails: [
      'a release between a failed attempt and wanting is not missed: wanting says so',
      'wanting what can be had now says so: free, expired, or of a dead session',
    ],
  },
  {
    store: WantIgnoresTheSession,
    fails: ['wanting a live grant says when its lease ends, or its session if that is sooner'],
  },
  {
    store: AnnouncementsAreCut,
    fails: ['the end of a wanted grant announces its own key, however much others look like it'],
  },
  { store: ListensForEver, fails: ['who stopped listening hears nothing more'] },
]
