/**
 * What can go wrong, by name: processes that are paused and killed, networks that swallow, slow
 * down, cut and lose replies. A fault is something a test *does*; nothing here is random and
 * nothing happens by itself.
 *
 * Everything started here ends with the process that started it, however that process ends, so
 * that a crashed test run leaves nothing alive. For POSIX systems: it needs process groups and
 * `sh`.
 *
 * @packageDocumentation
 */
export { freePort } from './free-port.ts'
export { isAlive } from './is-alive.ts'
export {
  type Exit,
  type RunningProcess,
  type StartOptions,
  startProcess,
} from './running-process.ts'
export { TcpProxy, type TcpTarget } from './tcp-proxy.ts'
