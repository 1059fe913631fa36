import type { Logger, SessionOptions, Settings } from '@millrace/shared';
import type { PreparedModel } from '../models/prepare.js';
import { curveKey, ServedModel } from '../models/served-model.js';
import type { CurvePoint, CurveTerms } from '../planning/cost-curve.js';
import { CurveStore } from '../planning/curve-store.js';
import { measureCurve } from '../planning/measure-curve.js';
import { PreprocessPool } from '../tasks/preprocess-pool.js';
import { type NodeShare, profileNodes } from './node-profile.js';

export interface ModelProfile {
  device: 'cpu' | 'cuda';
  /** What its sessions were opened with, and how many there were. */
  options: SessionOptions;
  threads: number;
  terms: CurveTerms;
  /** Measured at rest by one session, with what the fitted curve says. */
  points: (CurvePoint & { predictedMs: number })[];
  /** Mean and largest |predicted / measured - 1|. */
  errors: { mean: number; largest: number };
  /** Predicted ms of any batch. */
  predictMs(batch: number, size: number): number;
  nodes: NodeShare[];
  /** The batch that the nodes were profiled with. */
  nodesOf: { batch: number; size: number };
}

const TYPICAL = { batch: 32, size: 16 };

/**
 * Loads a model as serving does and tells what runs cost: by the stored curve, or one measured anew and
 * stored; and what kinds of nodes the time goes into.
 */
export async function profileModel(
  prepared: PreparedModel,
  settings: Settings,
  logger: Logger,
  { measure }: { measure: boolean },
): Promise<ModelProfile> {
  const { manifest, modelFile } = prepared;
  const pool = new PreprocessPool(1);
  const curves = new CurveStore(settings.dataDir, logger);
  try {
    const model = await ServedModel.load(prepared, settings, pool, curves, logger);
    const { task, options, sessions } = model;
    const [session] = sessions.clients;
    if (!session) throw new Error('a model without sessions');
    const key = curveKey(prepared, session.device, options);
    let found = measure ? undefined : await curves.read(key);
    if (!found) {
      found = await measureCurve(task, session, manifest.batching);
      await curves.write(key, found);
    }
    const { curve, points } = found;
    const { device } = session;
    const threads = sessions.clients.length;
    await model.close();

    const item = task.sample(TYPICAL.size);
    const { maxItems, maxCost } = manifest.batching;
    const batch = Math.max(1, Math.min(TYPICAL.batch, maxItems, Math.floor(maxCost / item.size)));
    const nodes = await profileNodes({ modelFile, device, session: options }, () =>
      task.assemble(Array.from({ length: batch }, () => item)),
    );
    return {
      device,
      options,
      threads,
      terms: curve.terms,
      points: points.map((point) => ({ ...point, predictedMs: curve.restMs(point.batch, point.size) })),
      errors: curve.errors(points),
      predictMs: (items, size) => curve.restMs(items, size),
      nodes,
      nodesOf: { batch, size: item.size },
    };
  } finally {
    await pool.close();
  }
}
