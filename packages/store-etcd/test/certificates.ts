import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { debianProgram } from '@dlock/services'

const run = promisify(execFile)

/** Paths of a certificate and its key, in PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** An authority of the test's own, in a folder that goes away. */
export class Authority implements AsyncDisposable {
  readonly ca: string
  readonly #folder: string
  readonly #openssl: string

  private constructor(folder: string, openssl: string) {
    this.#folder = folder
    this.#openssl = openssl
    this.ca = join(folder, 'ca.pem')
  }

  static async create(): Promise<Authority> {
    const folder = await mkdtemp(join(tmpdir(), 'dlock-ca-'))
    const authority = new Authority(folder, await debianProgram('openssl', 'openssl'))
    await authority.#ssl(
      ['req', '-x509', ...NEW_KEY, '-subj', '/CN=test authority', '-days', '2'],
      ['-keyout', join(folder, 'ca-key.pem'), '-out', authority.ca],
    )
    return authority
  }

  /** @param name the common name, which is the user that etcd takes a client for */
  async issue(name: string, subjectAltName: string): Promise<Certificate> {
    const [cert, key, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((ending) =>
      join(this.#folder, `${name}.${ending}`),
    ) as [string, string, string, string]
    // A member with client authentication calls itself, so it is a client, too.
    const usage = 'extendedKeyUsage=serverAuth,clientAuth'
    await writeFile(extensions, `subjectAltName=${subjectAltName}\n${usage}\n`)
    await this.#ssl(['req', ...NEW_KEY, '-subj', `/CN=${name}`, '-keyout', key, '-out', request])
    await this.#ssl(
      ['x509', '-req', '-in', request, '-out', cert, '-days', '2', '-extfile', extensions],
      ['-CA', this.ca, '-CAkey', join(this.#folder, 'ca-key.pem'), '-CAcreateserial'],
    )
    return { cert, key }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #ssl(...parts: readonly (readonly string[])[]): Promise<void> {
    await run(this.#openssl, parts.flat())
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

export async function read({ cert, key }: Certificate): Promise<{ cert: Buffer; key: Buffer }> {
  return { cert: await readFile(cert), key: await readFile(key) }
}
