import { expect, test } from 'vitest'
import { type Files, importsOf, matching, membersOf, repository } from './repository.ts'

/**
 * Which package may use which at run time, by folder name; `store-*` stands for every store. The
 * only copy of this table; ADR 0001 says why. Beyond it, everybody but `lock-api` may use `system`,
 * the seams for time, chance and ids.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'lock-api': [],
  system: [],
  testing: ['lock-api'],
  tck: ['lock-api', 'testing'],
  'store-*': ['lock-api'],
  'local-postgres': [],
  engine: ['lock-api'],
  protocol: ['lock-api'],
  guard: ['lock-api'],
  'lock-server': ['lock-api', 'protocol', 'engine'],
  'lock-client': ['lock-api', 'protocol'],
  cli: ['lock-api', 'protocol', 'lock-client'],
  // The only place that names stores.
  lockd: ['lock-api', 'engine', 'lock-server', 'local-postgres', 'store-*'],
  messages: ['lock-api', 'protocol'],
  'payment-resource': ['lock-api', 'protocol', 'guard', 'messages'],
  'rail-proxy': ['lock-api', 'protocol', 'guard', 'messages'],
  'rail-stub': ['protocol', 'messages'],
  'payout-executor': ['lock-api', 'protocol', 'guard', 'messages', 'lock-client'],
  model: ['lock-api'],
  // Its program drives an engine over a store in its own process when it is given no address.
  traffic: [
    'lock-api',
    'lock-client',
    'guard',
    'model',
    'engine',
    'store-memory',
    'store-postgres',
    'local-postgres',
  ],
  check: ['lock-api', 'model'],
  faults: ['lock-api'],
  // It starts lockd, databases and the payouts as processes, and knows none of their code.
  chaos: ['local-postgres', 'faults', 'services'],
  // The library mode that it measures is the engine over a store, in its own process.
  bench: [
    'lock-api',
    'lock-client',
    'engine',
    'store-postgres',
    'store-etcd',
    'local-postgres',
    'faults',
    'services',
  ],
  // The library mode in virtual time: the shipped client, engine and store, and the guard's rules.
  sim: ['lock-api', 'lock-client', 'engine', 'guard', 'store-memory', 'testing'],
  services: ['local-postgres', 'faults'],
  'seen-red': [],
  setup: [],
  tidy: [],
  'api-report': [],
  packaging: [],
}

function allowedFrom(name: string): readonly string[] | undefined {
  return ALLOWED[name] ?? (name.startsWith('store-') ? ALLOWED['store-*'] : undefined)
}

/** Applications, harness and tools are in nobody's row: they are ends. */
function isAllowed(from: string, to: string): boolean {
  if (to === 'system') return from !== 'lock-api'
  const allowed = allowedFrom(from) ?? []
  return allowed.includes(to) || (to.startsWith('store-') && allowed.includes('store-*'))
}

function forbiddenArrows(files: Files): string[] {
  return membersOf(files).flatMap(({ folder, name, manifest }) => {
    if (allowedFrom(name) === undefined) return [`${name} is not in the table`]
    const declared = Object.keys({
      ...manifest.dependencies,
      ...manifest.optionalDependencies,
      ...manifest.peerDependencies,
    }).map((to) => [`${folder}/package.json`, to] as const)
    const imported = matching(files, new RegExp(`^${folder}/(src|bin)/`)).flatMap(
      ([path, source]) => importsOf(source).map((to) => [path, to] as const),
    )
    return [...declared, ...imported]
      .filter(([, to]) => to.startsWith('@dlock/'))
      .map(([path, to]) => [path, to.split('/')[1] ?? ''] as const)
      .filter(([, to]) => to !== name && !isAllowed(name, to))
      .map(([path, to]) => `${path}: ${name} → ${to}`)
  })
}

/** NFR-16: what `lock-api` uses is its own files, and it has no dependency of any kind. */
function leavesOfLockApi(files: Files): string[] {
  const manifest = membersOf(files).find(({ name }) => name === 'lock-api')?.manifest
  const declared = Object.keys({
    ...manifest?.dependencies,
    ...manifest?.optionalDependencies,
    ...manifest?.peerDependencies,
  })
  const imported = matching(files, /^packages\/lock-api\/src\//).flatMap(([, source]) =>
    importsOf(source).filter((to) => !/^\.\/[^/]+$/.test(to)),
  )
  return [...declared, ...imported]
}

/** An import that climbs out of its package goes around the table. */
function climbingImports(files: Files): string[] {
  return matching(files, /^[^/]+\/[^/]+\/src\/.*\.ts$/).flatMap(([path, source]) => {
    const depth = path.split('/').length - 4
    return importsOf(source)
      .filter((to) => to.split('/').filter((part) => part === '..').length > depth)
      .map((to) => `${path}: ${to}`)
  })
}

test('packages use only what their layer allows', () => {
  expect(forbiddenArrows(repository)).toEqual([])
})

test('NFR-16: lock-api has no dependency and no import that leaves it', () => {
  expect(leavesOfLockApi(repository)).toEqual([])
})

test('no import climbs out of its package', () => {
  expect(climbingImports(repository)).toEqual([])
})

test('the rules see a forbidden arrow in a manifest, in an import and in a climb', () => {
  const wrong: Files = new Map([
    ['packages/engine/package.json', '{"dependencies":{"@dlock/store-memory":"0.1.0"}}'],
    ['packages/engine/src/index.ts', "import type { A } from '@dlock/lock-server/x'"],
    ['packages/engine/src/deep/b.ts', "export * from '../../../cli/src/a.ts'"],
    ['packages/new/package.json', '{}'],
    ['packages/lock-api/package.json', '{"peerDependencies":{"typescript":"5"}}'],
    ['packages/lock-api/src/index.ts', "import 'node:fs'\n// from 'pg'\nawait import('pg')"],
  ])
  expect(forbiddenArrows(wrong)).toEqual([
    'packages/engine/package.json: engine → store-memory',
    'packages/engine/src/index.ts: engine → lock-server',
    'new is not in the table',
  ])
  expect(leavesOfLockApi(wrong)).toEqual(['typescript', 'node:fs', 'pg'])
  expect(climbingImports(wrong)).toEqual(['packages/engine/src/deep/b.ts: ../../../cli/src/a.ts'])
})
