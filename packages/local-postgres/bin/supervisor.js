// Runs one postgres, and stops it when the owner is gone.
//
// Plain JavaScript, because it is started by path from src/ and from dist/ alike. The owner holds
// the write end of this process's stdin and never writes to it; the kernel closes it however the
// owner ends, kill -9 included. That is the only way to stop: a wanted stop takes the same path.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'

/** @type {{ command: string, args: string[], env: object, account?: { uid: number, gid: number }, throwaway?: string }} */
const job = JSON.parse(process.argv[2] ?? '')

// postgres inherits stderr, so that its log reaches the owner without passing through here.
const postgres = spawn(job.command, job.args, {
  ...job.account,
  env: job.env,
  cwd: '/',
  stdio: ['ignore', 'ignore', 'inherit'],
})
postgres.on('error', (error) => finish(1, error.message))
postgres.on('exit', (code) => finish(code ?? 1))

let stopping = false
process.stdin.on('end', stop).on('error', stop).resume()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)

// Fast shutdown (sessions are cut off, a checkpoint is written), then immediate (recovery at the
// next start), then the kernel. None of them loses a committed transaction.
function stop() {
  if (stopping) return
  stopping = true
  postgres.kill('SIGINT')
  setTimeout(() => postgres.kill('SIGQUIT'), 10_000)
  setTimeout(() => postgres.kill('SIGKILL'), 15_000)
}

function finish(code, message) {
  if (message !== undefined) process.stderr.write(`${message}\n`)
  if (stopping && job.throwaway !== undefined)
    rmSync(job.throwaway, { recursive: true, force: true })
  process.exit(code)
}
