import process from 'node:process'

const LOOK_EVERY_MS = 200

/**
 * Under npm, sends this process SIGTERM once npm is gone. npm forwards the signals it can catch;
 * when it is killed with SIGKILL it forwards nothing, and what it started would go on holding its
 * port with nobody left to stop it.
 */
export function stopWithParent() {
  if (process.env.npm_lifecycle_event === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, LOOK_EVERY_MS)
  timer.unref()
}
