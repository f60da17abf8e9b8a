import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const HERE = fileURLToPath(new URL('../', import.meta.url))
const run = promisify(execFile)

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly dependencies?: Record<string, string>
  readonly peerDependencies?: Record<string, string>
}

export interface Published {
  readonly name: string
  readonly folder: string
  /** What its users get from the registry beside it. */
  readonly externals: readonly string[]
}

/** Every package that is published, found in the checkout. */
export const published: readonly Published[] = readdirSync(join(ROOT, 'packages'))
  .map((name) => join(ROOT, 'packages', name))
  .filter((folder) => existsSync(join(folder, 'package.json')))
  .map((folder) => ({ folder, manifest: readManifest(folder) }))
  .filter(({ manifest }) => manifest.private !== true)
  .map(({ folder, manifest }) => ({
    name: manifest.name,
    folder,
    externals: Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter(
      (dependency) => !dependency.startsWith('@dlock/'),
    ),
  }))

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

/**
 * A project outside the checkout that has every published package installed the way npm would
 * unpack it from the registry, without asking a registry: our tarballs unpacked, what they need
 * linked from this checkout's own installation.
 */
export class Consumer implements AsyncDisposable {
  readonly folder: string

  static async create(): Promise<Consumer> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'dlock-consumer-')))
    const consumer = new Consumer(folder)
    await consumer.write('package.json', '{"type":"module"}')
    await consumer.#install()
    return consumer
  }

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Where the package with this name was installed. */
  installed(name: string): string {
    return join(this.folder, 'node_modules', name)
  }

  tarball(name: string): string {
    return join(this.folder, `${name.replace('@', '').replace('/', '-')}-0.1.0.tgz`)
  }

  async write(path: string, text: string): Promise<void> {
    await writeFile(join(this.folder, path), text)
  }

  /** Runs Node here. Its exit code and everything it printed, so that a test can show both. */
  async node(...args: string[]): Promise<{ code: number; output: string }> {
    try {
      const { stdout, stderr } = await run(process.execPath, args, {
        cwd: this.folder,
        env: { ...process.env, NODE_OPTIONS: '' },
      })
      return { code: 0, output: stdout + stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
      return { code, output: stdout + stderr }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }

  async #install(): Promise<void> {
    const workspaces = published.map(({ name }) => `--workspace=${name}`)
    await run('npm', ['pack', '--silent', `--pack-destination=${this.folder}`, ...workspaces], {
      cwd: ROOT,
    })
    for (const { name, folder, externals } of published) {
      await mkdir(this.installed(name), { recursive: true })
      const into = ['-C', this.installed(name), '--strip-components=1']
      await run('tar', ['-xzf', this.tarball(name), ...into])
      for (const external of externals) await this.#link(external, folder)
    }
    for (const tool of ['typescript', '@types/node', '@types/pg', 'vitest'])
      await this.#link(tool, HERE)
  }

  async #link(dependency: string, from: string): Promise<void> {
    const place = this.installed(dependency)
    if (existsSync(place)) return
    await mkdir(dirname(place), { recursive: true })
    await symlink(await realpath(join(from, 'node_modules', dependency)), place)
  }
}

/** The script of a tool that this package depends on. */
export function tool(path: string): string {
  return join(HERE, 'node_modules', path)
}
