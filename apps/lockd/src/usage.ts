import { flagOf, type Setting, settings, variableOf } from './settings.ts'

/** What `--help` says. */
export function usage(): string {
  const rows = (Object.values(settings) as Setting[]).map((setting) => [
    setting.key,
    setting.defaultSays ?? setting.kind.format(setting.default),
    setting.help,
  ])
  return `lockd: the dlock daemon. It grants locks as leases with fencing tokens, over HTTP.

Usage: lockd [--help] [--insecure] [--lock-config FILE] [--SETTING VALUE …]

${columns([['Setting', 'Default', ''], ...rows])}
A setting lock.default.ttl is the environment variable ${variableOf('lock.default.ttl')}, "lock.default.ttl" in the
configuration file (one JSON object), and the flag ${flagOf('lock.default.ttl')}; the later wins. LOCK_CONFIG names
the file, too. Durations: 250ms, 15s, 5m, 1h.

Exit status: 0 stopped when asked to; 1 could not start, or lost its database; 2 a mistake in the
configuration.
`
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => `  ${line(row).trimEnd()}\n`).join('')
}
