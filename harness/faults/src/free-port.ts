import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/**
 * A TCP port of 127.0.0.1 that was free a moment ago. Somebody else may take it before the caller
 * does: only for programs that cannot listen on port 0 and say which one they got.
 */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
