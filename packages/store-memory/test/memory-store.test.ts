import { MemoryStore } from '@dlock/store-memory'
import { describeLockStore } from '@dlock/tck'
import { ManualClock } from '@dlock/testing'

describeLockStore('MemoryStore', {
  capabilities: [
    'waiting',
    'transfer',
    'sessions',
    'listing',
    'audit',
    'tokens',
    'health',
    'ttlBounds',
  ],
  async open() {
    const clock = new ManualClock()
    const store = new MemoryStore({ clock })
    return {
      store,
      clock,
      openReplica: async () => store,
      killSession: async (sessionId) => store.loseSession(sessionId),
      waitMs: (ms) => clock.advance(ms),
      close: async () => {},
    }
  },
})
