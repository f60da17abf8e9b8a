import { type NextHolder, SessionDeadError, type StoreCapabilities } from '@dlock/lock-api'
import { type BrokenStore, later, OnClock, withToken } from './broken-store.ts'

class TransferIgnoresToken extends OnClock {
  override capabilities(): StoreCapabilities {
    const { transfer } = this.all
    return {
      ...this.all,
      transfer: {
        transfer: async (key: string, token: bigint, next: NextHolder) =>
          transfer.transfer(key, (await this.read(key))?.fencingToken ?? token, next),
      },
    }
  }
}

class TransferKeepsToken extends OnClock {
  override capabilities(): StoreCapabilities {
    const { transfer } = this.all
    return {
      ...this.all,
      transfer: {
        transfer: async (key: string, token: bigint, next: NextHolder) => {
          const { released, granted } = await transfer.transfer(key, token, next)
          return { released, granted: granted && withToken(granted, token) }
        },
      },
    }
  }
}

class TransferToTheDeadKeepsTheGrant extends OnClock {
  override capabilities(): StoreCapabilities {
    const { sessions, transfer } = this.all
    return {
      ...this.all,
      transfer: {
        transfer: async (key: string, token: bigint, next: NextHolder) => {
          const { state } = await sessions.describeSession(next.sessionId)
          if (state !== 'live') return { released: false, granted: undefined }
          return transfer.transfer(key, token, next)
        },
      },
    }
  }
}

class TransferForgetsWaiters extends OnClock {
  override capabilities(): StoreCapabilities {
    return {
      ...this.all,
      transfer: {
        transfer: async (key: string, token: bigint, next: NextHolder) => {
          if ((await this.read(key))?.fencingToken !== token) {
            return { released: false, granted: undefined }
          }
          this.silent = true
          await super.deleteIfOwner(key, token)
          this.silent = false
          const granted = await this.tryInsert(key, next.ownerId, next.sessionId, next.ttlMs).catch(
            (error: unknown) => {
              if (!(error instanceof SessionDeadError)) throw error
              return undefined
            },
          )
          return { released: true, granted }
        },
      },
      waiting: {
        want: (key) => this.all.waiting.want(key),
        subscribe: (onFreed, onGap) =>
          this.all.waiting.subscribe((key) => (this.silent ? undefined : onFreed(key)), onGap),
      },
    }
  }

  private silent = false
}

class TransferGrantsWhatIsGone extends OnClock {
  override capabilities(): StoreCapabilities {
    const { transfer } = this.all
    return {
      ...this.all,
      transfer: {
        transfer: async (key: string, token: bigint, next: NextHolder) => {
          const { released, granted } = await transfer.transfer(key, token, next)
          if (released) return { released, granted }
          const { ownerId, sessionId, ttlMs } = next
          return { released, granted: await this.tryInsert(key, ownerId, sessionId, ttlMs) }
        },
      },
    }
  }
}

class TransferCountsFromReply extends OnClock {
  override capabilities(): StoreCapabilities {
    const { transfer } = this.all
    return {
      ...this.all,
      transfer: {
        transfer: async (key: string, token: bigint, next: NextHolder) => {
          const { released, granted } = await transfer.transfer(key, token, next)
          return { released, granted: granted && later(granted, 1) }
        },
      },
    }
  }
}

export const transferBroken: readonly BrokenStore[] = [
  {
    store: TransferIgnoresToken,
    fails: [
      'a transfer with any other token changes nothing',
      'P-16: a transfer of a grant that was taken over harms nobody',
    ],
  },
  {
    store: TransferKeepsToken,
    fails: [
      'a transfer releases the one grant and makes the next, with a higher token',
      'a transfer within one session makes a new grant, for it is another task’s',
    ],
  },
  {
    store: TransferToTheDeadKeepsTheGrant,
    fails: ['a transfer to a dead session releases, and leaves the key free'],
  },
  {
    store: TransferForgetsWaiters,
    fails: [
      'a transfer does not forget who waits elsewhere',
      'a wanted grant that is transferred to a dead session is announced as freed',
    ],
  },
  { store: TransferGrantsWhatIsGone, fails: ['a transfer of a grant that is gone grants nothing'] },
  {
    store: TransferCountsFromReply,
    fails: ['FR-11: the deadline of a transferred grant counts from before the request was sent'],
  },
]
