/** The other process of `handOffAcross`: acquires when asked, says when it got it, releases. */
import { once } from 'node:events'
import type { PeerGrant } from './hand-off.ts'
import { LibraryMode } from './library-mode.ts'

const [, , url = '', key = ''] = process.argv

await using library = await LibraryMode.start(url)
await using session = await library.client.openSession('there')
const asked = new AbortController()
process.once('disconnect', () => asked.abort())
process.send?.('ready')
try {
  for (;;) {
    await once(process, 'message', { signal: asked.signal })
    const lock = await session.acquire(key, { ttlMs: 30_000, maxWaitMs: 30_000 })
    if (lock === undefined) throw new Error('the hand-off took longer than the wait')
    const grant: PeerGrant = {
      grantedNanos: String(process.hrtime.bigint()),
      fencingToken: String(lock.fencingToken),
    }
    process.send?.(grant)
    await session.release(lock)
  }
} catch (error) {
  if (!asked.signal.aborted) throw error
}
