import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type RunningProcess, startProcess } from '@dlock/faults'
import { debianProgram } from './debian-program.ts'

/** Of a member in a cluster on loopback. */
interface Member {
  readonly name: string
  readonly client: string
  readonly peer: string
  readonly folder: string
}

/** An etcd of the test's own: one or more real members on free ports, in a folder that goes away. */
export class EtcdCluster implements AsyncDisposable {
  readonly endpoints: readonly string[]
  readonly folder: string
  readonly #members: readonly Member[]
  readonly #flags: readonly string[]
  readonly #scheme: 'http' | 'https'
  readonly #processes: RunningProcess[] = []

  private constructor(
    folder: string,
    members: readonly Member[],
    flags: readonly string[],
    scheme: 'http' | 'https',
  ) {
    this.folder = folder
    this.#members = members
    this.#flags = flags
    this.#scheme = scheme
    this.endpoints = members.map(({ client }) => client)
  }

  /** @param scheme of clients; the flags then name the certificates */
  static async start(
    size = 1,
    flags: readonly string[] = [],
    scheme: 'http' | 'https' = 'http',
  ): Promise<EtcdCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'dlock-etcd-'))
    const members: Member[] = []
    for (let index = 0; index < size; index += 1) {
      members.push({
        name: `member-${index}`,
        client: `127.0.0.1:${await freePort()}`,
        peer: `127.0.0.1:${await freePort()}`,
        folder: join(folder, `member-${index}`),
      })
    }
    const cluster = new EtcdCluster(folder, members, flags, scheme)
    await Promise.all(members.map((_, index) => cluster.startMember(index)))
    return cluster
  }

  /** Starts a member, for the first time or again, on the data that it has. */
  async startMember(index: number): Promise<void> {
    const member = this.#members[index]
    if (member === undefined) throw new RangeError(`no member ${index}`)
    const peers = this.#members.map(({ name, peer }) => `${name}=http://${peer}`).join(',')
    const etcd = await startProcess(await debianProgram('etcd', 'etcd-server'), {
      args: [
        `--name=${member.name}`,
        `--data-dir=${member.folder}`,
        `--listen-client-urls=${this.#scheme}://${member.client}`,
        `--advertise-client-urls=${this.#scheme}://${member.client}`,
        `--listen-peer-urls=http://${member.peer}`,
        `--initial-advertise-peer-urls=http://${member.peer}`,
        `--initial-cluster=${peers}`,
        '--initial-cluster-state=new',
        ...this.#flags,
      ],
    })
    this.#processes[index] = etcd
    await etcd.waitForLine(/ready to serve client requests/)
  }

  member(index: number): RunningProcess {
    const member = this.#processes[index]
    if (member === undefined) throw new RangeError(`no member ${index}`)
    return member
  }

  memberFolder(index: number): string {
    const member = this.#members[index]
    if (member === undefined) throw new RangeError(`no member ${index}`)
    return member.folder
  }

  /** For `etcdctl snapshot restore`: the same member, so the same cluster as far as it can tell. */
  restoreFlags(index: number): readonly string[] {
    const member = this.#members[index]
    if (member === undefined) throw new RangeError(`no member ${index}`)
    return [
      `--name=${member.name}`,
      `--data-dir=${member.folder}`,
      `--initial-advertise-peer-urls=http://${member.peer}`,
      `--initial-cluster=${member.name}=http://${member.peer}`,
    ]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((etcd) => etcd.kill()))
    await rm(this.folder, { recursive: true, force: true })
  }
}
