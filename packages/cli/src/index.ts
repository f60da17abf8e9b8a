/**
 * `dlock`, the command line: run a command under a lock, look at locks and sessions, take a lock
 * away, watch, and move the token counter after a restore.
 *
 * `run` (`run.ts`) is the lock client around a process group (`process-group.ts`). The command is
 * not started before the lock is held. When the lock is lost, its whole group gets SIGTERM and then
 * SIGKILL, before the lease can be granted to another: the client calls a lock lost while the margin
 * of its lease is still ahead, and `last-held.ts` counts from when it was last seen held, so that a
 * loss noticed late leaves less time, down to none. When dlock itself is killed, an undertaker kills
 * the group.
 *
 * **Not promised**: that nothing of the command acts after the lock is another's. A process that
 * left the group, a request that is on its way, a dlock that is frozen while its command runs: only
 * a resource that checks `DLOCK_FENCING_TOKEN` is safe from these.
 *
 * The other subcommands are one call of the service each, as a table for people or as JSON.
 *
 * @packageDocumentation
 */
export { exitCodes } from './exit-codes.ts'
export { main } from './main.ts'
export type { Shell } from './shell.ts'
