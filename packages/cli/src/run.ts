import { hostname, userInfo } from 'node:os'
import { type LockHandle, MAX_OWNER_ID_LENGTH, RetryableLockError } from '@dlock/lock-api'
import { LockClient, type LockClientSession } from '@dlock/lock-client'
import { formatFencingToken } from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import { CommandFailure, exitCodes, signalStatus } from './exit-codes.ts'
import { LastHeld } from './last-held.ts'
import { ProcessGroup } from './process-group.ts'
import { unreachable } from './service.ts'
import type { Shell } from './shell.ts'

/** As commander hands them over; durations in milliseconds. */
export interface RunOptions {
  readonly url: URL
  readonly key: string
  readonly ttl: number
  readonly wait: number
  readonly maxHold?: number
  readonly owner?: string
}

const SAFETY_MARGIN = 0.3
const SESSION_TTL_MS = 15_000
/** Of the margin; the rest is for the kernel to carry out the kill. */
const USED_OF_MARGIN = 0.8
/** For what the command left running, which is stopped before the lock is released. */
const LEFTOVERS_MS = 5_000

/** These end a wait for the lock; every signal is passed on to the command. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

/**
 * Runs a command while holding a lock: never before it is held, and never, as far as this process
 * can see to it, after it may be another's.
 *
 * @returns the exit status
 */
export async function run(
  options: RunOptions,
  command: readonly string[],
  shell: Shell,
): Promise<number> {
  if (process.platform === 'win32') {
    throw new CommandFailure(exitCodes.failed, 'run needs process groups, which Windows has not')
  }
  const waiting = new AbortController()
  let relay = (signal: NodeJS.Signals): void => {
    if (ENDING.includes(signal)) waiting.abort(signal)
  }
  const stopListening = shell.onSignal((signal) => {
    // A holder that sleeps loses its lock, and the command would go on.
    if (signal === 'SIGTSTP') shell.err('not suspended: the lock would be lost')
    else relay(signal)
  })
  const client = new LockClient({
    url: options.url,
    safetyMargin: SAFETY_MARGIN,
    sessionTtlMs: SESSION_TTL_MS,
    onError: (error, during) => shell.err(`${during}: ${(error as Error).message}`),
  })
  try {
    const held = await acquire(client, options, waiting.signal)
    const group = new ProcessGroup(command, environment(held.lock, shell), shell.clock)
    relay = (signal) => group.signal(signal)
    await group.started
    return await holdFor(group, held, shell)
  } catch (error) {
    if (waiting.signal.aborted) return signalStatus(waiting.signal.reason as NodeJS.Signals)
    throw error
  } finally {
    await client.close()
    stopListening()
  }
}

/** A lock that is held, and until when it stays out of others' reach once it is lost. */
interface Held {
  readonly client: LockClient
  readonly session: LockClientSession
  readonly lock: LockHandle
  readonly marginMs: number
}

async function acquire(
  client: LockClient,
  { url, key, ttl, wait, maxHold, owner }: RunOptions,
  signal: AbortSignal,
): Promise<Held> {
  let session: LockClientSession
  try {
    session = await client.openSession(owner ?? defaultOwner())
  } catch (error) {
    throw error instanceof RetryableLockError ? unreachable(url.origin) : error
  }
  const lock = await session.acquire(key, {
    ttlMs: ttl,
    maxWaitMs: wait,
    signal,
    ...(maxHold !== undefined && { maxHoldMs: maxHold }),
  })
  signal.throwIfAborted()
  if (lock === undefined) throw await notAcquired(client, key)
  const marginMs = SAFETY_MARGIN * USED_OF_MARGIN * Math.min(ttl, SESSION_TTL_MS)
  return { client, session, lock, marginMs }
}

async function notAcquired(client: LockClient, key: string): Promise<CommandFailure> {
  const holder = await client.inspect(key).catch(() => undefined)
  const whose = holder === undefined ? 'another' : `${holder.ownerId}, token ${holder.fencingToken}`
  return new CommandFailure(
    exitCodes.notAcquired,
    `${JSON.stringify(key)} was not acquired: held by ${whose}. --wait waits for it`,
  )
}

/** The innermost `dlock run` wins: a command sees the lock that was taken for it. */
function environment(lock: LockHandle, shell: Shell): NodeJS.ProcessEnv {
  return {
    ...shell.env,
    DLOCK_KEY: lock.key,
    DLOCK_FENCING_TOKEN: formatFencingToken(lock.fencingToken),
  }
}

async function holdFor(group: ProcessGroup, held: Held, shell: Shell): Promise<number> {
  const { session, lock, marginMs } = held
  const lost = session.lostSignal(lock)
  const lastHeld = new LastHeld(() => session.checkStillHeld(lock), marginMs, shell.clock)
  const lostLater = aborted(lost)
  const status = await Promise.race([group.ended, lostLater])
  lastHeld.stop()
  if (status === undefined || lost.aborted) {
    shell.err(`${(lost.reason as Error).message}. Stopping the command`)
    await group.end(Promise.race([after(lastHeld.safeForMs(), shell.clock), takenFrom(held)]))
    return exitCodes.lost
  }
  await group.end(Promise.race([after(LEFTOVERS_MS, shell.clock), lostLater]))
  await release(held, shell)
  return status
}

/**
 * Resolves when the service says that the key is not this grant's any more: then there is no time
 * left. Without an answer the margin decides.
 */
async function takenFrom({ client, lock }: Held): Promise<void> {
  try {
    const info = await client.inspect(lock.key)
    if (info?.fencingToken !== lock.fencingToken) return
  } catch {
    // Not known.
  }
  await new Promise(() => {})
}

/** Whatever comes of it, the command is done, and its exit status stands. */
async function release({ session, lock }: Held, shell: Shell): Promise<void> {
  try {
    const released = await session.release(lock)
    if (!released) shell.err(`the lock ${JSON.stringify(lock.key)} was gone at its release`)
  } catch (error) {
    shell.err(`not released: ${(error as Error).message}. It ends with its lease`)
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function after(delayMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(Math.max(delayMs, 0), resolve)
  })
}

function defaultOwner(): string {
  return `${userInfo().username}@${hostname()}:${process.pid}`.slice(-MAX_OWNER_ID_LENGTH)
}
