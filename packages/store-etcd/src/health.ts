import type { EtcdState } from './etcd-state.ts'

/** A linearizable read: it needs a leader with a majority behind it. */
export async function checkHealth(state: EtcdState): Promise<void> {
  await state.epoch.requireServing()
  await state.client.range({ key: Buffer.from(state.keys.meta) })
}
