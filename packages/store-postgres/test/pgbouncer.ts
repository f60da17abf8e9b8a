import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const SYSTEM_BINARY = '/usr/sbin/pgbouncer'
/** Of Debian's `nobody`: PgBouncer refuses to run as root. */
const NOBODY = 65_534

export interface PgBouncer extends AsyncDisposable {
  /** Of the same database, by way of the pooler. */
  readonly url: string
}

/** A PgBouncer in transaction pooling, in front of the database of `url`. */
export async function startPgBouncer(url: string): Promise<PgBouncer> {
  const binary = await findPgBouncer()
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  await chmod(folder, 0o755)
  const port = await freePort()
  const target = new URL(url)
  await writeFile(join(folder, 'users.txt'), `"${target.username}" "${target.password}"\n`)
  await writeFile(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${target.hostname} port=${target.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 6
`,
  )
  const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const child = spawn(binary, ['-q', join(folder, 'pgbouncer.ini')], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...asNobody,
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString()
  })
  const ended = once(child, 'exit')
  await answersOn(port, ended, () => log)
  const through = new URL(url)
  through.port = String(port)
  return {
    url: through.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true })
    },
  }
}

/** The system's, or else the package that apt has: installed as root, and unpacked as anybody else. */
async function findPgBouncer(): Promise<string> {
  if (await exists(SYSTEM_BINARY)) return SYSTEM_BINARY
  const unpacked = join(tmpdir(), 'dlock-pgbouncer')
  const own = join(unpacked, 'usr/sbin/pgbouncer')
  if (await exists(own)) return own
  try {
    if (process.getuid?.() === 0) {
      await run('apt-get', ['update'])
      await run('apt-get', ['install', '-y', '--no-install-recommends', 'pgbouncer'])
      return SYSTEM_BINARY
    }
    const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-deb-'))
    await run('apt-get', ['download', 'pgbouncer'], { cwd: folder })
    await run('sh', ['-c', `dpkg -x pgbouncer_*.deb "${unpacked}"`], { cwd: folder })
    await rm(folder, { recursive: true })
    return own
  } catch (error) {
    throw new Error(
      `PgBouncer is needed to prove P-11: it is not at ${SYSTEM_BINARY}, and apt could not bring it. Install the package pgbouncer.`,
      { cause: error },
    )
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function answersOn(port: number, ended: Promise<unknown>, log: () => string): Promise<void> {
  let gone = false
  void ended.then(() => {
    gone = true
  })
  while (!gone) {
    const socket = connect(port, '127.0.0.1')
    const answer = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (answer) return
  }
  throw new Error(`PgBouncer did not start: ${log()}`)
}
