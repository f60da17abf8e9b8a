// A process of its own that starts a server, says which, and ends as its test wants.
import { startLocalPostgres } from '@dlock/local-postgres'

const [folder, then] = process.argv.slice(2)
const postgres = await startLocalPostgres(folder === 'throwaway' ? {} : { folder })
console.log(JSON.stringify({ pid: postgres.pid, folder: postgres.folder, url: postgres.url() }))
if (then === 'wait') setInterval(() => {}, 60_000)
