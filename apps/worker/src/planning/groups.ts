import type { BatchingOptions } from '@millrace/shared';

/** What the planner needs to know of a prepared item. */
export interface Plannable {
  /** Tokens or elements. */
  readonly size: number;
  /** Items run together only if their keys are equal. */
  readonly shapeKey: string;
  /** Epoch ms of its enqueueing; the lower, the more urgent. */
  readonly enqueuedAt: number;
  /** Runs by itself: it was there when a worker died. */
  readonly alone: boolean;
}

export type GroupLimits = Pick<BatchingOptions, 'maxItems' | 'maxCost' | 'maxPadding'>;

/**
 * Which prepared items run together: sorted by size and cut into neighbours, so that little is padded. A
 * group ends where one more item would pass `maxItems`, `maxCost` (items x largest size) or `maxPadding`
 * (share of the padded size that is padding). Every item is in exactly one group; an item too large for
 * `maxCost` runs alone. Groups come most urgent first.
 */
export function planGroups<T extends Plannable>(items: readonly T[], limits: GroupLimits): T[][] {
  const groups: T[][] = [];
  const sorted = [...items].sort((a, b) => a.size - b.size || a.enqueuedAt - b.enqueuedAt);
  const byKey = new Map<string, T[]>();
  for (const item of sorted) {
    if (item.alone) {
      groups.push([item]);
      continue;
    }
    const same = byKey.get(item.shapeKey);
    if (same) same.push(item);
    else byKey.set(item.shapeKey, [item]);
  }
  for (const same of byKey.values()) groups.push(...cut(same, limits));
  return groups
    .map((group) => ({ group, oldest: Math.min(...group.map((item) => item.enqueuedAt)) }))
    .sort((a, b) => a.oldest - b.oldest)
    .map(({ group }) => group);
}

/** Cuts items sorted by size, smallest first. */
function cut<T extends Plannable>(sorted: readonly T[], limits: GroupLimits): T[][] {
  const groups: T[][] = [];
  let group: T[] = [];
  let total = 0;
  for (const item of sorted) {
    const padded = item.size * (group.length + 1);
    const padding = padded === 0 ? 0 : 1 - (total + item.size) / padded;
    const fits = group.length < limits.maxItems && padded <= limits.maxCost && padding <= limits.maxPadding;
    if (group.length > 0 && !fits) {
      groups.push(group);
      group = [];
      total = 0;
    }
    group.push(item);
    total += item.size;
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
