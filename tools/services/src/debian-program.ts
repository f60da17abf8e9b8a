import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Where Debian puts programs, some of which an ordinary user's PATH does not name. */
const ALSO_IN = ['/usr/local/bin', '/usr/bin', '/usr/sbin']

/**
 * The path of a program that a test runs for real: the system's, or else from Debian's package,
 * installed now. Never skipped: a test that cannot have it fails, and says what to do.
 */
export async function debianProgram(program: string, debianPackage: string): Promise<string> {
  const found = find(program)
  if (found !== undefined) return found
  try {
    // Several test files may come here at once: they wait for each other's turn with the packages.
    const apt = ['-o', 'DPkg::Lock::Timeout=300', '-o', 'APT::Get::Assume-Yes=true', '-qq']
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
    await run('apt-get', [...apt, 'update'], { env })
    await run('apt-get', [...apt, 'install', '--no-install-recommends', debianPackage], { env })
  } catch (error) {
    throw new Error(
      `${program} is needed, and could not be installed (Debian's package ${debianPackage}): ${String(error)}`,
    )
  }
  const installed = find(program)
  if (installed === undefined) throw new Error(`${debianPackage} was installed without ${program}`)
  return installed
}

function find(program: string): string | undefined {
  return [...(process.env['PATH'] ?? '').split(delimiter), ...ALSO_IN]
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path))
}
