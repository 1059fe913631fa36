import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@millrace/shared';
import { expect } from 'chai';
import { CostCurve, type CurvePoint } from './cost-curve.js';
import { type CurveKey, CurveStore } from './curve-store.js';

const key: CurveKey = {
  modelSha256: 'a'.repeat(64),
  onnxruntimeVersion: '1.0.0',
  device: 'cpu',
  session: {
    threads: 1,
    intraOpThreads: 1,
    allowSpinning: false,
    graphOptimizationLevel: 'all',
    disabledOptimizers: [],
  },
};

/** Runs of 0.2 ms an item and 0.1 ms a token, each as many times slower as `slowed` says. */
function measured(slowed: readonly number[]) {
  const grid = [1, 2, 4, 8].flatMap((batch) => [8, 32].map((size) => ({ batch, size })));
  const points: CurvePoint[] = grid.map(({ batch, size }, i) => ({
    batch,
    size,
    ms: batch * (0.2 + 0.1 * size) * (slowed[i % slowed.length] ?? 1),
  }));
  return { curve: CostCurve.fit(points), points };
}

describe('the store of cost curves', () => {
  let folder: string;
  const logger = createLogger('silent', {});
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-curves-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('keeps a curve that its points agree with', async () => {
    const store = new CurveStore(folder, logger);
    const found = measured([1, 1.05]);
    await store.write(key, found);
    expect((await store.read(key))?.points).to.deep.equal(found.points);
  });

  it('does not keep one that was measured on a busy machine', async () => {
    const store = new CurveStore(folder, logger);
    const other = { ...key, onnxruntimeVersion: '2.0.0' };
    await store.write(other, measured([1, 3, 1, 0.4]));
    expect(await store.read(other)).to.equal(undefined);
  });
});
