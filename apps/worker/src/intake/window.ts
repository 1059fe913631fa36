import type { BatchingOptions } from '@millrace/shared';

export type WindowClosed = 'size' | 'cost' | 'idle' | 'time' | 'drain';

export interface WindowView {
  /** Prepared items that wait. */
  items: number;
  /** Their sizes added up, in tokens or elements. */
  cost: number;
  /** Epoch ms of the oldest one's enqueueing. */
  oldestEnqueuedAt: number;
  now: number;
  /** Expected ms to the next item. */
  arrivalGapMs: number;
  /** What starting a run costs whatever is in it, in ms. */
  fixedMs: number;
  /** Ms until a session would have nothing to do; 0 for an idle one. */
  sessionBusyMs: number;
  draining: boolean;
}

/** So long before a session has nothing to do, in ms, the next batch is handed to it: its thread must not wait for it. */
const HAND_OVER_MS = 10;

/**
 * The batch window, asked when a session has room. It opened with the enqueueing of its oldest item, so
 * that an item which has waited long enough elsewhere runs at once. While every session is busy nobody
 * asks: staying open costs nothing then.
 *
 * @returns why it is closed, or the epoch ms at which it will be.
 */
export function windowState(view: WindowView, batching: BatchingOptions): WindowClosed | number {
  if (view.items >= batching.maxItems) return 'size';
  if (view.cost >= batching.maxCost) return 'cost';
  if (view.draining) return 'drain';
  // Waiting for one more item costs an idle session the time until it comes, and saves it a run's fixed
  // cost: on a CPU next to nothing, on a device that is slow to start most of a run.
  const gains = view.arrivalGapMs < view.fixedMs;
  // Behind a run that goes on for long it costs nothing, however long the oldest item has waited.
  const handOverAt = view.now + view.sessionBusyMs - HAND_OVER_MS;
  if (gains && handOverAt > view.now) return handOverAt;
  const closesAt = view.oldestEnqueuedAt + batching.windowMs;
  if (view.now >= closesAt) return 'time';
  return gains || batching.closeEarly === 'never' ? closesAt : 'idle';
}
