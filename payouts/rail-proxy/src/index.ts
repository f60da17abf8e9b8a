/**
 * The rail proxy: guard 2 of the payouts, and the only one that may call the rail. It owns
 * `raildb`: the high-water mark of every account, and every attempt ever made. In this order and no
 * other: the token is above the mark; the payout has no earlier attempt; the attempt is committed;
 * the rail is asked, once. Whatever is not a definite answer is recorded as unknown, for ever.
 *
 * What it does not do: retry, or find out what happened to an attempt that nobody heard of again.
 *
 * @packageDocumentation
 */
export { railProxySettings, startRailProxy } from './rail-proxy.ts'
