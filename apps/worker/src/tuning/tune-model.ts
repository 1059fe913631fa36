import { availableParallelism } from 'node:os';
import { type Logger, type SessionOptions, type Settings, StartupError } from '@millrace/shared';
import type { PreparedModel } from '../models/prepare.js';
import { curveKey, defaultThreads, taskOf } from '../models/served-model.js';
import { CurveStore } from '../planning/curve-store.js';
import { measureCurve } from '../planning/measure-curve.js';
import { SessionClient } from '../session/session-client.js';
import { ONNXRUNTIME_VERSION } from '../session/session-pool.js';
import { PreprocessPool } from '../tasks/preprocess-pool.js';
import type { Task } from '../tasks/task.js';
import { finalists, type Layout, layouts, type MeasuredLayout } from './layouts.js';
import { type NodeShare, profileNodes } from './node-profile.js';
import { rawThroughput } from './raw-throughput.js';
import { type SampleItem, sampleItems } from './sample-items.js';
import { searchSession, type Trial } from './search.js';
import { TrialBench } from './trial.js';
import { type TuningKey, TuningStore } from './tuning-store.js';
import { planWorkload, type Workload } from './workload.js';

/** What a change must win to be taken: less is noise on a machine that also does other things. */
export const MARGIN = 0.03;
/**
 * Mean |a - b| / |b| of the items' outputs, b being those of the manifest's options. Another order of float
 * operations moves a quantized model's values over the edges of its steps, which alone makes 0.01 (fixed
 * scales) to 0.033 (dynamic ones) in a six-layer encoder; quantizing it had made 0.056 and 0.116.
 */
export const TOLERANCE = 0.05;

/** Shares of the time given: the options of one session, then how the cores are shared out. */
const OPTIONS_SHARE = 0.4;
const LAYOUTS_SHARE = 0.15;
const DUEL_MS = { share: 0.03, least: 400, most: 3000 };
const LAYOUT_MS = { least: 300, most: 2000 };

export interface TuneRequest {
  prepared: PreparedModel;
  settings: Settings;
  logger: Logger;
  /** Time for all of the tuning, the whole path included; about half of it is used here. */
  seconds: number;
  tolerance?: number;
  signal?: AbortSignal;
  onTrial?: (trial: Trial) => void;
}

export interface TuneResult {
  key: TuningKey;
  /** The manifest's options, with its thread count worked out for this machine. */
  manifest: SessionOptions;
  profile: NodeShare[];
  trials: Trial[];
  /** Best options of one session, and what they won over the manifest's when measured once more. */
  best: SessionOptions;
  speed: number;
  layouts: MeasuredLayout[];
  /** What is to be measured over the whole path: the manifest's options first. */
  candidates: SessionOptions[];
  samples: SampleItem[];
}

/**
 * Searches session options by measuring sessions alone: all but what the whole path has to decide.
 * @throws StartupError for a model on a simulated device.
 */
export async function tuneModel(request: TuneRequest): Promise<TuneResult> {
  const { prepared, settings, signal } = request;
  if (prepared.manifest.simulate) {
    throw new StartupError(
      `The model ${prepared.manifest.name} simulates a device, which has no options to tune.`,
      'Take "simulate" out of its model.yaml.',
    );
  }
  const pool = new PreprocessPool(1);
  try {
    const task = taskOf(prepared, pool);
    const samples = await sampleItems(prepared.manifest, settings.modelsDir);
    const workload = await workloadOf(request, task, samples);
    const found = await searchOptions(request, task, workload);
    signal?.throwIfAborted();
    const measured = await measureLayouts(request, task, workload, found.best);
    const { session } = prepared.manifest;
    const threads = settings.sessionThreads || session.threads || defaultThreads(session);
    const manifest = { ...session, threads };
    const others = finalists(measured).map((layout) => withLayout(found.best, layout));
    return {
      key: keyOf(prepared, settings),
      manifest,
      ...found,
      layouts: measured,
      candidates: distinct([manifest, ...others]),
      samples,
    };
  } finally {
    await pool.close();
  }
}

/** Puts a choice where serving on this machine finds it; `report` beside it. Returns both paths. */
export async function storeTuning(
  dataDir: string,
  logger: Logger,
  prepared: PreparedModel,
  settings: Settings,
  choice: SessionOptions,
  report?: object,
): Promise<{ path: string; reportPath: string }> {
  const store = new TuningStore(dataDir, logger);
  const key = keyOf(prepared, settings);
  await store.write(key, choice, prepared.manifest.session, report);
  return { path: store.path(key), reportPath: store.reportPath(key) };
}

function keyOf({ modelSha256 }: PreparedModel, { device }: Settings): TuningKey {
  return { modelSha256, onnxruntimeVersion: ONNXRUNTIME_VERSION, device };
}

/** The batches that serving would make of the samples, by the stored curve or one measured now. */
async function workloadOf(
  { prepared, settings, logger }: TuneRequest,
  task: Task,
  samples: readonly SampleItem[],
): Promise<Workload> {
  const { batching, session } = prepared.manifest;
  const key = curveKey(prepared, settings.device, session);
  const stored = await new CurveStore(settings.dataDir, logger).read(key);
  if (stored) return planWorkload(task, samples, batching, stored.curve);
  const client = await SessionClient.open({
    modelFile: prepared.modelFile,
    device: settings.device,
    session,
  });
  try {
    const { curve } = await measureCurve(task, client, batching);
    return await planWorkload(task, samples, batching, curve);
  } finally {
    await client.release();
  }
}

async function searchOptions(
  { prepared, settings, seconds, signal, onTrial, tolerance = TOLERANCE }: TuneRequest,
  task: Task,
  workload: Workload,
): Promise<Pick<TuneResult, 'profile' | 'trials' | 'best' | 'speed'>> {
  const { modelFile, manifest } = prepared;
  const model = { modelFile, device: settings.device };
  const deadline = performance.now() + seconds * OPTIONS_SHARE * 1000;
  const budgetMs = clamp(seconds * 1000 * DUEL_MS.share, DUEL_MS.least, DUEL_MS.most);
  const largest = workload.groups.reduce((a, b) => (b.length > a.length ? b : a));
  const profile = (session: SessionOptions) =>
    profileNodes({ ...model, session }, () => task.assemble(largest));
  const start = { ...manifest.session, intraOpThreads: 1, allowSpinning: false };
  const bench = new TrialBench(model, task, workload);
  try {
    await bench.setRight(start);
    const first = await profile(start);
    let { best, trials } = await searchSession(
      start,
      {
        duel: (a, b) => {
          signal?.throwIfAborted();
          return bench.duel(a, b, budgetMs);
        },
        profile,
        hasTime: () => performance.now() < deadline && !signal?.aborted,
        ...(onTrial ? { onTrial } : {}),
      },
      { tolerance, margin: MARGIN },
    );
    signal?.throwIfAborted();
    let speed = 1;
    if (best !== start) {
      // Of many changes one may have won by luck: all together must win once more.
      const { bestMs, candidateMs } = await bench.duel(start, best, 2 * budgetMs);
      speed = bestMs / candidateMs;
      if (speed <= 1 + MARGIN / 2) best = start;
    }
    return { profile: first, trials, best, speed };
  } finally {
    await bench.close();
  }
}

async function measureLayouts(
  { prepared, settings, seconds, signal }: TuneRequest,
  task: Task,
  workload: Workload,
  best: SessionOptions,
): Promise<MeasuredLayout[]> {
  const all = layouts(availableParallelism(), settings.sessionThreads);
  const ms = clamp((seconds * 1000 * LAYOUTS_SHARE) / (2 * all.length), LAYOUT_MS.least, LAYOUT_MS.most);
  const model = { modelFile: prepared.modelFile, device: settings.device };
  const most = new Map<Layout, number>();
  // Twice in turn: a second in which something else ran must not decide.
  for (let round = 0; round < 2; round++) {
    for (const layout of all) {
      signal?.throwIfAborted();
      const figure = await rawThroughput(model, withLayout(best, layout), task, workload, ms);
      most.set(layout, Math.max(most.get(layout) ?? 0, figure));
    }
  }
  return all.map((layout) => ({ ...layout, rawItemsPerSecond: most.get(layout) ?? 0 }));
}

function withLayout(options: SessionOptions, layout: Layout): SessionOptions {
  const { threads, intraOpThreads, allowSpinning } = layout;
  return { ...options, threads, intraOpThreads, allowSpinning };
}

function distinct(options: readonly SessionOptions[]): SessionOptions[] {
  return [...new Map(options.map((each) => [JSON.stringify(each), each])).values()];
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));
