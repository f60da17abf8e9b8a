/** The first release of each line without the known faults that a lock service meets. */
const SAFE_FROM: ReadonlyMap<string, number> = new Map([
  ['3.4', 42],
  ['3.5', 28],
  ['3.6', 9],
])

/**
 * Why `version` should not be run, for an operator; `undefined` when nothing is known against it.
 *
 * Below these a member may renew a lease that was revoked, lose or repeat what a watch should have
 * delivered, and let a user write outside its role.
 */
export function whyUnsafe(version: string): string | undefined {
  const [, line = '', patch = ''] = /^(\d+\.\d+)\.(\d+)/.exec(version) ?? []
  const safeFrom = SAFE_FROM.get(line)
  const older = /^([012]\.|3\.[0-3]$)/.test(line)
  if (safeFrom === undefined ? !older : Number(patch) >= safeFrom) return undefined
  const safe = [...SAFE_FROM].map((release) => release.join('.')).join(', ')
  return `etcd ${version} has known faults that locks can meet; run at least ${safe}`
}
