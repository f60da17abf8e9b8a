import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
  type IConfigFile,
} from '@microsoft/api-extractor'

const PACKAGES = fileURLToPath(new URL('../../../packages/', import.meta.url))

/** Folder names under `packages/`. */
export const published: readonly string[] = readdirSync(PACKAGES)

/**
 * The public API of one package as text, from what `tsc -b` built: every exported name with its
 * signature, and nothing that its users cannot see.
 */
export function apiReport(name: string): string {
  const folder = join(PACKAGES, name)
  const scratch = mkdtempSync(join(tmpdir(), 'dlock-api-report-'))
  try {
    const config = ExtractorConfig.prepare({
      configObject: configOf(folder, scratch),
      configObjectFullPath: undefined,
      packageJsonFullPath: join(folder, 'package.json'),
    })
    const problems: string[] = []
    const { succeeded } = Extractor.invoke(config, {
      localBuild: true,
      messageCallback: (message) => {
        message.handled = true
        if (message.logLevel === 'error') problems.push(message.formatMessageWithLocation(folder))
      },
    })
    if (!succeeded || problems.length > 0) throw new Error(problems.join('\n'))
    return readFileSync(join(scratch, `${name}.api.md`), 'utf8')
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

function configOf(folder: string, scratch: string): IConfigFile {
  return {
    projectFolder: folder,
    mainEntryPointFilePath: join(folder, 'dist/index.d.ts'),
    newlineKind: 'lf',
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          module: 'nodenext',
          target: 'es2023',
          lib: ['es2023', 'esnext.disposable'],
          types: ['node'],
          strict: true,
          skipLibCheck: true,
          allowImportingTsExtensions: true,
          noEmit: true,
        },
        files: [join(folder, 'dist/index.d.ts')],
      },
      skipLibCheck: true,
    },
    apiReport: {
      enabled: true,
      reportFolder: scratch,
      reportTempFolder: join(scratch, 'temp'),
      includeForgottenExports: true,
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      // The report is of names and types; the doc comments are judged by people.
      tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
    },
  }
}
