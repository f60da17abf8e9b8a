/**
 * Where an engine reports how long its calls took, in seconds. No key, owner or token ever goes in
 * (NFR-09). A meter must not throw.
 *
 * Not metered: calls with bad arguments, calls whose caller aborted them, and calls of dead
 * sessions; they say nothing about the service.
 */
export interface EngineMeter {
  /** `contended` is an answer, `error` the absence of one. */
  acquired(outcome: 'granted' | 'contended' | 'error', seconds: number): void
  /** `lost` is final, `error` leaves it open. */
  renewed(outcome: 'renewed' | 'lost' | 'error', seconds: number): void
  /** `gone`: the grant had ended before. */
  released(outcome: 'released' | 'gone' | 'error', seconds: number): void
  /** From the release, or from the announcement of one elsewhere, to the next waiter's grant. */
  handedOff(seconds: number): void
}

export const noMeter: EngineMeter = {
  acquired: () => {},
  renewed: () => {},
  released: () => {},
  handedOff: () => {},
}
