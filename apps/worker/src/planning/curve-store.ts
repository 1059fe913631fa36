import { createHash } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { arch, cpus } from 'node:os';
import { join } from 'node:path';
import { type Logger, makeFolder, type SessionOptions, type SimulatedDevice } from '@millrace/shared';
import { z } from 'zod';
import { CostCurve } from './cost-curve.js';
import type { MeasuredCurve } from './measure-curve.js';

/** All that a measured curve depends on. */
export interface CurveKey {
  modelSha256: string;
  onnxruntimeVersion: string;
  device: string;
  session: SessionOptions;
  simulate?: SimulatedDevice | undefined;
}

/** Points that lie further from their own fit, in the mean, were not measured at rest. */
const MOST_MEAN_ERROR = 0.25;

const number = z.number().finite().min(0);
const storedSchema = z.object({
  machine: z.string(),
  terms: z.object({ fixed: number, perItem: number, perUnit: number, perSquare: number }),
  points: z.array(z.object({ batch: number, size: number, ms: number })).min(1),
});

/** Curves measured on this machine, one file each in the data folder. */
export class CurveStore {
  readonly #folder: string;
  readonly #logger: Logger;

  constructor(dataDir: string, logger: Logger) {
    this.#folder = join(dataDir, 'curves');
    this.#logger = logger;
  }

  /** The stored curve, or undefined when there is none of this key, it is broken, or of another machine. */
  async read(key: CurveKey): Promise<MeasuredCurve | undefined> {
    const path = this.#path(key);
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    const parsed = storedSchema.safeParse(parseJson(text));
    if (!parsed.success || parsed.data.machine !== machine()) {
      const why = parsed.success ? 'was measured on another machine' : 'is broken';
      this.#logger.warn({ path }, `the stored cost curve ${why}; it is measured again`);
      return undefined;
    }
    return { curve: new CostCurve(parsed.data.terms), points: parsed.data.points };
  }

  /** Keeps a curve, unless its points contradict it: then the machine was busy, and the next start measures again. */
  async write(key: CurveKey, { curve, points }: MeasuredCurve): Promise<void> {
    const { mean } = curve.errors(points);
    if (mean > MOST_MEAN_ERROR) {
      this.#logger.warn(
        { meanError: mean },
        'the cost curve was measured while this machine was busy; it is used now and measured again at the next start',
      );
      return;
    }
    const path = this.#path(key);
    const half = `${path}.${process.pid}.part`;
    await makeFolder(this.#folder);
    await writeFile(half, JSON.stringify({ machine: machine(), terms: curve.terms, points }, undefined, 2));
    await rename(half, path);
  }

  #path(key: CurveKey): string {
    const { modelSha256, onnxruntimeVersion, device, session, simulate } = key;
    // Thread count doesn't change one session's own time.
    const { threads: _, ...options } = session;
    const text = JSON.stringify([modelSha256, onnxruntimeVersion, device, options, simulate]);
    return join(this.#folder, `${createHash('sha256').update(text).digest('hex').slice(0, 16)}.json`);
  }
}

function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown'} ${arch()}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
