import { readFileSync } from 'node:fs'
import process from 'node:process'

const LOOK_EVERY_MS = 200

/**
 * Under npm, sends this process SIGTERM once npm is gone. npm forwards the signals it can catch;
 * when it is killed with SIGKILL it forwards nothing, and what it started would go on holding its
 * port with nobody left to stop it.
 */
export function stopWithParent() {
  if (process.env.npm_lifecycle_event === undefined) return
  const started = ancestors()
  const timer = setInterval(() => {
    if (ancestors() === started) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, LOOK_EVERY_MS)
  timer.unref()
}

/** npm starts a shell, which some shells replace by their command and others do not. */
function ancestors() {
  return `${process.ppid} ${parentOf(process.ppid)}`
}

/** Where the kernel does not tell, only the direct parent is looked after. */
function parentOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // pid (name) state parent …; the name may hold anything, parentheses too.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
  } catch {
    return ''
  }
}
