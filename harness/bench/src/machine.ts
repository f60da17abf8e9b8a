import { cpus, loadavg, release, totalmem, type } from 'node:os'

/** What the figures were made on. */
export function describeMachine(store: string, settings: readonly string[]): readonly string[] {
  const [first] = cpus()
  return [
    `${cpus().length} × ${first?.model.trim() ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    `${type()} ${release()}, Node ${process.versions.node}, ${store} on the same machine`,
    `load averages at the end ${loadavg()
      .map((load) => load.toFixed(1))
      .join(', ')}`,
    ...settings,
  ]
}
