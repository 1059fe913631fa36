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
   * A run with bulk items takes no longer than this by its prediction, in ms, or is of one item: whoever comes meanwhile
   * waits no longer. They run among themselves, or with a group of others that takes less than half of it. Absent: all
   * classes run together.
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
  const byKey = new Map<string, { first: T[]; bulk: T[] }>();
  const apart = limits.bulkRunMs !== undefined;
  for (const item of items) {
    if (item.alone) groups.push([item]);
    else {
      const same = byKey.get(item.shapeKey) ?? { first: [], bulk: [] };
      byKey.set(item.shapeKey, same);
      (apart && item.bulk ? same.bulk : same.first).push(item);
    }
  }
  for (const { first, bulk } of byKey.values()) {
    const cuts = cut(first, limits, curve);
    const rest = fillUp(cuts, bulk, limits, curve);
    groups.push(...cuts, ...cut(rest, limits, curve, limits.bulkRunMs));
  }
  return groups
    .map((group) => ({
      group,
      urgency: group.reduce((least, item) => Math.min(least, item.urgency), Number.POSITIVE_INFINITY),
    }))
    .sort((a, b) => a.urgency - b.urgency)
    .map(({ group }) => group);
}

/** A group of others is filled up to this share of what a run of bulk items may take: its own items wait for that. */
const FILLED_SHARE = 0.5;

/**
 * Puts bulk items into groups of others that are shorter than a run of bulk items may be: a run's fixed cost is paid
 * once, and nothing is padded more, for none is larger than its group's largest.
 *
 * @returns the bulk items that are left.
 */
function fillUp<T extends Plannable>(
  groups: readonly T[][],
  bulk: readonly T[],
  limits: GroupLimits,
  curve: Predictor,
): T[] {
  const { bulkRunMs, maxItems, maxCost } = limits;
  if (bulkRunMs === undefined || bulk.length === 0) return [...bulk];
  const longestMs = FILLED_SHARE * bulkRunMs;
  const left = [...bulk].sort((a, b) => a.size - b.size || b.urgency - a.urgency);
  for (const group of groups) {
    const largest = group.reduce((most, item) => Math.max(most, item.size), 0);
    // The largest that fits comes last among those that do.
    let end = left.findLastIndex(({ size }) => size <= largest) + 1;
    const room = (count: number): boolean =>
      count <= maxItems && count * largest <= maxCost && curve.predictMs(count, largest) <= longestMs;
    while (end > 0 && room(group.length + 1)) group.push(...left.splice(--end, 1));
  }
  return left;
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
