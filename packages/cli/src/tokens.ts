import { formatFencingToken, tokenCounterOperations } from '@dlock/protocol'
import { CommandFailure, exitCodes } from './exit-codes.ts'
import type { Service } from './service.ts'
import type { Shell } from './shell.ts'

/**
 * `dlock tokens check`: whether every token from now on is above every fence that guards hold. After
 * the lock database was restored, it may not be (INV-04).
 */
export async function checkTokens(
  service: Service,
  { fences, json }: { readonly fences: readonly bigint[]; readonly json: boolean },
  shell: Shell,
): Promise<number> {
  if (fences.length === 0) {
    throw new CommandFailure(
      exitCodes.failed,
      'no fence to compare with: give the highest that each guard holds, with --fence or --fences-from',
    )
  }
  const { highestToken } = await service.call(tokenCounterOperations.readTokenCounter, {})
  const highestFence = fences.reduce((one, other) => (one > other ? one : other))
  const safe = highestFence <= BigInt(highestToken ?? 0)
  const fence = formatFencingToken(highestFence)
  if (json) {
    shell.out(JSON.stringify({ safe, highestToken, highestFence: fence }))
  } else if (safe) {
    shell.out(
      `Safe: tokens go on above ${highestToken}, and the highest of the fences is ${fence}.`,
    )
  } else {
    shell.out(
      `NOT SAFE: the highest token issued is ${highestToken ?? 'none'}, and a guard holds ${fence}. It would
refuse every new holder until the tokens have caught up. Run: dlock tokens advance --above ${fence}`,
    )
  }
  return safe ? exitCodes.done : exitCodes.no
}

/** `dlock tokens advance`: makes every later token exceed a number. Forward only. */
export async function advanceTokens(
  service: Service,
  { above, json }: { readonly above: bigint; readonly json: boolean },
  shell: Shell,
): Promise<number> {
  const counter = await service.call(tokenCounterOperations.advanceTokenCounter, {
    above: formatFencingToken(above),
  })
  shell.out(
    json
      ? JSON.stringify(counter)
      : `Every later token is above ${counter.highestToken ?? 'none'}.`,
  )
  return exitCodes.done
}
