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
  /** Of the class that gives way to all others. */
  readonly bulk?: boolean;
}

/** Predicted milliseconds of one run. */
export interface Predictor {
  predictMs(batch: number, size: number): number;
}

export interface GroupLimits
  extends Pick<BatchingOptions, 'maxItems' | 'maxCost' | 'planner' | 'sortedItems'> {
  /**
   * Bulk items run among themselves, and a run of them takes no longer than this by its prediction, in ms, or
   * is of one item: whoever comes meanwhile waits no longer. Absent: all classes run together.
   */
  bulkRunMs?: number | undefined;
}

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
  const apart = limits.bulkRunMs !== undefined;
  for (const item of items) {
    if (item.alone) groups.push([item]);
    else {
      const key = apart && item.bulk ? `bulk ${item.shapeKey}` : item.shapeKey;
      const same = byKey.get(key);
      if (same) same.push(item);
      else byKey.set(key, [item]);
    }
  }
  for (const same of byKey.values()) {
    const longestMs = apart && same[0]?.bulk ? limits.bulkRunMs : undefined;
    groups.push(...cut(same, limits, curve, longestMs));
  }
  return groups
    .map((group) => ({
      group,
      urgency: group.reduce((least, item) => Math.min(least, item.urgency), Number.POSITIVE_INFINITY),
    }))
    .sort((a, b) => a.urgency - b.urgency)
    .map(({ group }) => group);
}

function cut<T extends Plannable>(
  items: T[],
  limits: GroupLimits,
  curve: Predictor,
  longestMs = Number.POSITIVE_INFINITY,
): T[][] {
  const fits = (count: number, size: number): boolean =>
    count <= 1 || (count * size <= limits.maxCost && curve.predictMs(count, size) <= longestMs);
  if (limits.planner === 'padding') {
    return cutByCount(
      items.sort((a, b) => a.urgency - b.urgency),
      limits.maxItems,
      fits,
    );
  }
  const sorted = items.sort((a, b) => a.size - b.size);
  if (limits.planner === 'cost') return cutByCost(sorted, limits, curve, longestMs);
  return cutByCount(sorted, Math.min(limits.sortedItems, limits.maxItems), fits);
}

/**
 * Least total predicted time: best[i] is the least time in which the i smallest items can run, found from
 * each possible last group. n items take n * maxItems predictions.
 */
function cutByCost<T extends Plannable>(
  sorted: readonly T[],
  limits: GroupLimits,
  curve: Predictor,
  longestMs: number,
): T[][] {
  const n = sorted.length;
  const best = new Float64Array(n + 1).fill(Number.POSITIVE_INFINITY);
  const from = new Int32Array(n + 1);
  best[0] = 0;
  for (let end = 1; end <= n; end++) {
    const size = sorted[end - 1]?.size ?? 0;
    for (let batch = 1; batch <= end && batch <= limits.maxItems; batch++) {
      if (batch > 1 && batch * size > limits.maxCost) break;
      const ms = curve.predictMs(batch, size);
      if (batch > 1 && ms > longestMs) break;
      const total = (best[end - batch] ?? 0) + ms;
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

/** Groups of at most `count`, in the order given, as long as they fit. */
function cutByCount<T extends Plannable>(
  items: readonly T[],
  count: number,
  fits: (count: number, size: number) => boolean,
): T[][] {
  const groups: T[][] = [];
  let group: T[] = [];
  let largest = 0;
  for (const item of items) {
    const size = Math.max(largest, item.size);
    if (group.length > 0 && (group.length >= count || !fits(group.length + 1, size))) {
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
