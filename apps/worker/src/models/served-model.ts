import { availableParallelism } from 'node:os';
import {
  type Logger,
  type Manifest,
  type SessionOptions,
  type Settings,
  StartupError,
} from '@millrace/shared';
import type { CostCurve, CurvePoint } from '../planning/cost-curve.js';
import type { CurveKey, CurveStore } from '../planning/curve-store.js';
import { type MeasuredCurve, measureCurve } from '../planning/measure-curve.js';
import { ONNXRUNTIME_VERSION, SessionPool } from '../session/session-pool.js';
import type { PreprocessPool } from '../tasks/preprocess-pool.js';
import type { Task } from '../tasks/task.js';
import { TensorTask } from '../tasks/tensor.js';
import { TextEmbedding } from '../tasks/text-embedding.js';
import { TuningStore } from '../tuning/tuning-store.js';
import { checkSignature } from './check-signature.js';
import type { PreparedModel } from './prepare.js';

/** A run that takes longer, in ms, is not made only for the memory that it needs. */
const MOST_MEMORY_RUN_MS = 500;

/** A model loaded into its sessions and warm. */
export class ServedModel {
  private constructor(
    readonly manifest: Manifest,
    readonly task: Task,
    readonly sessions: SessionPool,
    readonly curve: CostCurve,
    /** What its sessions were opened with: the tuned options of this machine, or the manifest's. */
    readonly options: SessionOptions,
  ) {}

  /** @throws StartupError when onnxruntime can't load the model. */
  static async load(
    prepared: PreparedModel,
    settings: Settings,
    preprocess: PreprocessPool,
    curves: CurveStore,
    logger: Logger,
  ): Promise<ServedModel> {
    const { manifest } = prepared;
    requireAllowed(manifest, settings, logger);
    const tuned = await new TuningStore(settings.dataDir, logger).read(
      { modelSha256: prepared.modelSha256, onnxruntimeVersion: ONNXRUNTIME_VERSION, device: settings.device },
      manifest.session,
    );
    const opened =
      (tuned && (await openTuned(prepared, settings, tuned, logger))) ??
      (await openSessions(prepared, settings, manifest.session));
    const { sessions, options } = opened;
    const warning = sessions.clients[0]?.warning;
    if (warning) {
      const remedy = 'its libraries come with `npm rebuild onnxruntime-node --ignore-scripts=false`';
      logger.error({ model: manifest.name }, `${warning} - serving on the CPU instead; ${remedy}`);
    }
    const [first] = sessions.clients;
    if (first) checkSignature(manifest, first.signature);
    const task = taskOf(prepared, preprocess);
    await warmUp(task, sessions);
    const { curve, points } = await curveOf(prepared, task, sessions, options, curves);
    await takeMemory(task, sessions, points);
    return new ServedModel(manifest, task, sessions, curve, options);
  }

  async close(): Promise<void> {
    await this.sessions.release();
  }
}

/** Its times are made up: nobody may serve it without knowing. @throws StartupError unless it is allowed. */
function requireAllowed({ name, simulate }: Manifest, settings: Settings, logger: Logger): void {
  if (!simulate) return;
  if (!settings.allowSimulated) {
    throw new StartupError(
      `The model ${name} simulates a device (runMs ${simulate.runMs}, itemMs ${simulate.itemMs}).`,
      'Set MILLRACE_ALLOW_SIMULATED=true to serve it all the same, or take "simulate" out of its model.yaml.',
    );
  }
  logger.warn({ model: name, ...simulate }, 'this model runs on a simulated device: its times are made up');
}

interface Opened {
  sessions: SessionPool;
  options: SessionOptions;
}

/** @throws StartupError when onnxruntime can't load the model with these options. */
async function openSessions(
  { manifest, modelFile }: PreparedModel,
  settings: Settings,
  options: SessionOptions,
): Promise<Opened> {
  const threads = settings.sessionThreads || options.threads || defaultThreads(options);
  try {
    const sessions = await SessionPool.open(threads, {
      modelFile,
      device: settings.device,
      session: options,
      simulate: manifest.simulate,
    });
    return { sessions, options };
  } catch (cause) {
    throw new StartupError(
      `The model ${manifest.name} cannot be loaded: ${(cause as Error).message}`,
      manifest.build.from === 'onnx'
        ? `Check that ${manifest.build.file} is an ONNX file that onnxruntime ${ONNXRUNTIME_VERSION} reads.`
        : 'Check the session options in its model.yaml; delete its folder in the cache to have it built anew.',
      { cause },
    );
  }
}

/** A choice that no longer loads must not keep the model from being served. */
async function openTuned(
  prepared: PreparedModel,
  settings: Settings,
  tuned: SessionOptions,
  logger: Logger,
): Promise<Opened | undefined> {
  try {
    return await openSessions(prepared, settings, tuned);
  } catch (error) {
    logger.error(
      { model: prepared.manifest.name, err: error },
      'the tuned session options no longer load; serving with those of model.yaml - run `millrace tune` again',
    );
    return undefined;
  }
}

/** One session a core, or a share of them each. */
export function defaultThreads({ intraOpThreads }: SessionOptions): number {
  return Math.max(1, Math.floor(availableParallelism() / intraOpThreads));
}

/** @throws StartupError when the manifest names a tokenizer that is not among the model's files. */
export function taskOf({ manifest, files }: PreparedModel, preprocess: PreprocessPool): Task {
  if (manifest.task === 'tensor') return new TensorTask(manifest);
  const tokenizerFile = files[manifest.text.tokenizer];
  if (!tokenizerFile) {
    throw new StartupError(
      `The model ${manifest.name} names the tokenizer ${manifest.text.tokenizer}, which is not among its files.`,
      'List it under "files" in model.yaml.',
    );
  }
  return new TextEmbedding(manifest, tokenizerFile, preprocess);
}

/** Every session runs a small and a middling item once, every tokenizer is read: requests find all loaded. */
async function warmUp(task: Task, sessions: SessionPool): Promise<void> {
  await task.warm();
  const { sampleSizes: sizes } = task;
  for (const size of [sizes[0] ?? 1, sizes[Math.floor(sizes.length / 2)] ?? 1]) {
    await Promise.all(sessions.clients.map((client) => client.run(task.assemble([task.sample(size)]))));
  }
}

/**
 * Every session runs the largest group that the curve was measured with. onnxruntime keeps the memory of its largest run:
 * so a worker has its size from the start, and does not grow for half an hour by every burst larger than those before.
 */
async function takeMemory(task: Task, sessions: SessionPool, points: readonly CurvePoint[]): Promise<void> {
  const cost = ({ batch, size }: CurvePoint): number => batch * size;
  const largest = points
    .filter(({ ms }) => ms <= MOST_MEMORY_RUN_MS)
    .reduce<CurvePoint | undefined>(
      (most, each) => (most && cost(most) >= cost(each) ? most : each),
      undefined,
    );
  if (!largest) return;
  const group = Array.from({ length: largest.batch }, () => task.sample(largest.size));
  await Promise.all(sessions.clients.map((client) => client.run(task.assemble(group))));
}

/** The curve stored for this model and machine, or measured now and stored. */
async function curveOf(
  prepared: PreparedModel,
  task: Task,
  sessions: SessionPool,
  options: SessionOptions,
  curves: CurveStore,
): Promise<MeasuredCurve> {
  const [session] = sessions.clients;
  if (!session) throw new Error('a model without sessions');
  const key = curveKey(prepared, session.device, options);
  const stored = await curves.read(key);
  if (stored) return stored;
  const measured = await measureCurve(task, session, prepared.manifest.batching);
  // A data folder that can't be written costs the next start a measurement, nothing else.
  await curves.write(key, measured).catch(() => undefined);
  return measured;
}

/** What the curve of a model's session is stored under. */
export function curveKey(
  { manifest, modelSha256 }: PreparedModel,
  device: 'cpu' | 'cuda',
  session: SessionOptions,
): CurveKey {
  const { simulate } = manifest;
  return { modelSha256, onnxruntimeVersion: ONNXRUNTIME_VERSION, device, session, simulate };
}
