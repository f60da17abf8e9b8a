import type { EtcdClient } from './client/etcd-client.ts'
import { type KeyValue, prefixEnd } from './client/txn.ts'

/** Also as many as can be looked at in one transaction: etcd takes 128 operations. */
const PAGE = 100

/** Everything stored under `prefix`, in the order of the keys. Each page is a read of its own. */
export async function* pagesUnder(
  client: EtcdClient,
  prefix: string,
): AsyncGenerator<readonly KeyValue[], void, undefined> {
  let from = prefix
  for (;;) {
    const { items, more } = await client.range({
      key: Buffer.from(from),
      rangeEnd: prefixEnd(prefix),
      limit: String(PAGE),
    })
    yield items
    const last = items.at(-1)
    if (!more || last === undefined) return
    from = `${last.key}\0`
  }
}
