import { LockClient } from '@dlock/lock-client'

const locks = new LockClient({ url: 'http://127.0.0.1:7400' })
const session = await locks.openSession('worker-7')
const lock = await session.acquire('report:daily', { ttlMs: 15_000, maxWaitMs: 2_000 })
if (lock === undefined) throw new Error('somebody else has it')
console.log(`mine, with token ${lock.fencingToken}`) // hand it to everything you write to
const renewed = await session.renew(lock) // the session does this by itself, too
console.log(`still mine, with token ${renewed.fencingToken}`)
await session.release(renewed)
await locks.close()
