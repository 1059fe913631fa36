import type { SessionClient } from '../session/session-client.js';
import type { Task } from '../tasks/task.js';
import { CostCurve, type CurvePoint } from './cost-curve.js';

const BATCHES = [1, 2, 4, 8, 16, 32];
/** Of each point the shortest run counts: what makes a run longer is not the model's doing. */
const RUNS = 3;
/** Measuring ends early after this long, in ms; what is measured by then must do. */
const MOST_MS = 4000;

export interface MeasuredCurve {
  curve: CostCurve;
  points: CurvePoint[];
}

/**
 * Measures one session at rest: every size alone, and batches of each up to `maxItems` items and `maxCost`
 * padded size. Smallest runs first, so that a slow model is cut short where it is slowest.
 */
export async function measureCurve(
  task: Task,
  session: SessionClient,
  limits: { maxItems: number; maxCost: number },
): Promise<MeasuredCurve> {
  const grid = task.sampleSizes.flatMap((size) =>
    BATCHES.filter(
      (batch) => batch === 1 || (batch <= limits.maxItems && batch * size <= limits.maxCost / 2),
    ).map((batch) => ({ batch, size })),
  );
  grid.sort((a, b) => a.batch * a.size - b.batch * b.size);
  const points: CurvePoint[] = [];
  const began = performance.now();
  for (const { batch, size } of grid) {
    if (points.length >= 4 && performance.now() - began > MOST_MS) break;
    const item = task.sample(size);
    const group = Array.from({ length: batch }, () => item);
    let ms = Number.POSITIVE_INFINITY;
    for (let run = 0; run < RUNS; run++) ms = Math.min(ms, (await session.run(task.assemble(group))).runMs);
    points.push({ batch, size, ms });
  }
  return { curve: CostCurve.fit(points), points };
}
