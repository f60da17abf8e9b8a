import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { debianProgram } from '@dlock/services'

interface EndpointStatus {
  readonly Endpoint: string
  readonly Status: { readonly header: { readonly member_id: number }; readonly leader: number }
}

/** Which of the endpoints leads, as etcd's own command says. */
export async function leaderOf(endpoints: readonly string[]): Promise<number> {
  const { stdout } = await promisify(execFile)(await debianProgram('etcdctl', 'etcd-client'), [
    `--endpoints=${endpoints.join(',')}`,
    'endpoint',
    'status',
    '--write-out=json',
  ])
  const statuses = JSON.parse(stdout) as readonly EndpointStatus[]
  const leader = statuses.find(({ Status }) => Status.leader === Status.header.member_id)
  if (leader === undefined) throw new Error('no member says that it leads')
  return endpoints.indexOf(leader.Endpoint)
}
