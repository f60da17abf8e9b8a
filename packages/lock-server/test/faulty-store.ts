import { MemoryStore } from '@dlock/store-memory'

/** A memory store whose every call can be made to fail, or to be held back, from outside. */
export interface FaultyStore {
  readonly store: MemoryStore
  /** Methods that reject, by name; "*" is every method. */
  readonly failing: Map<string, Error>
  /** Methods that are held back until the promise resolves. */
  readonly held: Map<string, Promise<void>>
  /** How often each method was called. */
  readonly calls: Map<string, number>
}

export function faultyStore(memory: MemoryStore = new MemoryStore()): FaultyStore {
  const failing = new Map<string, Error>()
  const held = new Map<string, Promise<void>>()
  const calls = new Map<string, number>()
  const faulty = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function' || name === 'backendId') {
          return typeof value === 'object' && value !== null ? faulty(value) : value
        }
        if (name === 'capabilities') return () => faulty(value.call(target) as object)
        return async (...args: unknown[]) => {
          const method = String(name)
          calls.set(method, (calls.get(method) ?? 0) + 1)
          const error = failing.get(method) ?? failing.get('*')
          if (error !== undefined && method !== 'subscribe') throw error
          await held.get(method)
          return value.apply(target, args) as unknown
        }
      },
    })
  return { store: faulty(memory), failing, held, calls }
}
