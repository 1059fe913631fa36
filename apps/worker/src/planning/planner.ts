import type { BatchingOptions } from '@millrace/shared';

/** What the planner needs to know of a prepared item. */
export interface Plannable {
  /** Tokens or elements. */
  readonly size: number;
  /** Items run together only if their keys are equal. */
  readonly shapeKey: string;
  /** The lower, the more urgent: a priority class before its next, the longest waiting first within one. */
  readonly urgency: number;
  /** Runs by itself: it was there when a worker died. */
  readonly alone: boolean;
}

/** Predicted milliseconds of one run. */
export interface Predictor {
  predictMs(batch: number, size: number): number;
}

export type GroupLimits = Pick<BatchingOptions, 'maxItems' | 'maxCost' | 'planner' | 'sortedItems'>;

/**
 * Which prepared items run together: every item in exactly one group, an item too large for `maxCost` alone.
 * The group that holds the most urgent item comes first. Since the first group is the one that runs next, an
 * item waits at most until those more urgent than itself have run, whatever arrives meanwhile.
 */
export function planGroups<T extends Plannable>(
  items: readonly T[],
  limits: GroupLimits,
  curve: Predictor,
): T[][] {
  const groups: T[][] = [];
  const byKey = new Map<string, T[]>();
  for (const item of items) {
    if (item.alone) groups.push([item]);
    else {
      const same = byKey.get(item.shapeKey);
      if (same) same.push(item);
      else byKey.set(item.shapeKey, [item]);
    }
  }
  for (const same of byKey.values()) groups.push(...cut(same, limits, curve));
  return groups
    .map((group) => ({
      group,
      urgency: group.reduce((least, item) => Math.min(least, item.urgency), Number.POSITIVE_INFINITY),
    }))
    .sort((a, b) => a.urgency - b.urgency)
    .map(({ group }) => group);
}

function cut<T extends Plannable>(items: T[], limits: GroupLimits, curve: Predictor): T[][] {
  if (limits.planner === 'padding') {
    return cutByCount(
      items.sort((a, b) => a.urgency - b.urgency),
      limits.maxItems,
      limits.maxCost,
    );
  }
  const sorted = items.sort((a, b) => a.size - b.size);
  if (limits.planner === 'cost') return cutByCost(sorted, limits, curve);
  return cutByCount(sorted, Math.min(limits.sortedItems, limits.maxItems), limits.maxCost);
}

/**
 * Least total predicted time: best[i] is the least time in which the i smallest items can run, found from
 * each possible last group. n items take n * maxItems predictions.
 */
function cutByCost<T extends Plannable>(sorted: readonly T[], limits: GroupLimits, curve: Predictor): T[][] {
  const n = sorted.length;
  const best = new Float64Array(n + 1).fill(Number.POSITIVE_INFINITY);
  const from = new Int32Array(n + 1);
  best[0] = 0;
  for (let end = 1; end <= n; end++) {
    const size = sorted[end - 1]?.size ?? 0;
    for (let batch = 1; batch <= end && batch <= limits.maxItems; batch++) {
      if (batch > 1 && batch * size > limits.maxCost) break;
      const total = (best[end - batch] ?? 0) + curve.predictMs(batch, size);
      if (total < (best[end] ?? 0)) {
        best[end] = total;
        from[end] = end - batch;
      }
    }
  }
  const groups: T[][] = [];
  for (let end = n; end > 0; end = from[end] ?? 0) groups.push(sorted.slice(from[end], end));
  return groups.reverse();
}

/** Groups of `count`, in the order given, whatever they cost. */
function cutByCount<T extends Plannable>(items: readonly T[], count: number, maxCost: number): T[][] {
  const groups: T[][] = [];
  let group: T[] = [];
  let largest = 0;
  for (const item of items) {
    const size = Math.max(largest, item.size);
    if (group.length > 0 && (group.length >= count || (group.length + 1) * size > maxCost)) {
      groups.push(group);
      group = [];
    }
    largest = group.length === 0 ? item.size : size;
    group.push(item);
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

/** Share of a group's padded size that is padding, 0 to 1. */
export function paddingShare(group: readonly Plannable[]): number {
  const largest = group.reduce((most, item) => Math.max(most, item.size), 0);
  const total = group.reduce((sum, item) => sum + item.size, 0);
  return largest === 0 ? 0 : 1 - total / (largest * group.length);
}
