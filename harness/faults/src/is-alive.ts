import { readFileSync } from 'node:fs'

/**
 * Whether a process still does something. A zombie, ended and not yet collected by its parent, does
 * not, although it can still be signalled; in a container without an init orphans stay so for ever.
 */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  if (process.platform !== 'linux') return true
  try {
    // pid (name) state …; the name may hold anything, parentheses too.
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z'
  } catch {
    return false
  }
}
