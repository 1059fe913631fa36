import { availableParallelism } from 'node:os';
import { type Logger, type Manifest, type Settings, StartupError } from '@millrace/shared';
import type { CostCurve } from '../planning/cost-curve.js';
import type { CurveStore } from '../planning/curve-store.js';
import { type MeasuredCurve, measureCurve } from '../planning/measure-curve.js';
import { ONNXRUNTIME_VERSION, SessionPool } from '../session/session-pool.js';
import type { PreprocessPool } from '../tasks/preprocess-pool.js';
import type { Task } from '../tasks/task.js';
import { TensorTask } from '../tasks/tensor.js';
import { TextEmbedding } from '../tasks/text-embedding.js';
import type { PreparedModel } from './prepare.js';

/** A model loaded into its sessions and warm. */
export class ServedModel {
  private constructor(
    readonly manifest: Manifest,
    readonly task: Task,
    readonly sessions: SessionPool,
    readonly curve: CostCurve,
  ) {}

  /** @throws StartupError when onnxruntime can't load the model. */
  static async load(
    prepared: PreparedModel,
    settings: Settings,
    preprocess: PreprocessPool,
    curves: CurveStore,
    logger: Logger,
  ): Promise<ServedModel> {
    const { manifest, modelFile } = prepared;
    requireAllowed(manifest, settings, logger);
    const threads = settings.sessionThreads || manifest.session.threads || defaultThreads(manifest);
    let sessions: SessionPool;
    try {
      sessions = await SessionPool.open(threads, {
        modelFile,
        device: settings.device,
        session: manifest.session,
        simulate: manifest.simulate,
      });
    } catch (cause) {
      throw new StartupError(
        `The model ${manifest.name} cannot be loaded: ${(cause as Error).message}`,
        'Check the session options in its model.yaml; delete its folder in the cache to have it built anew.',
        { cause },
      );
    }
    const warning = sessions.clients[0]?.warning;
    if (warning) logger.error({ model: manifest.name }, `${warning} - serving on the CPU instead`);
    const task = taskOf(prepared, preprocess);
    await warmUp(task, sessions);
    const { curve } = await curveOf(prepared, task, sessions, curves);
    return new ServedModel(manifest, task, sessions, curve);
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

function defaultThreads(manifest: Manifest): number {
  return Math.max(1, Math.floor(availableParallelism() / manifest.session.intraOpThreads));
}

function taskOf({ manifest, files }: PreparedModel, preprocess: PreprocessPool): Task {
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

/** Every session runs a small and a middling item once: the first request finds everything loaded. */
async function warmUp(task: Task, sessions: SessionPool): Promise<void> {
  const { sampleSizes: sizes } = task;
  for (const size of [sizes[0] ?? 1, sizes[Math.floor(sizes.length / 2)] ?? 1]) {
    await Promise.all(sessions.clients.map((client) => client.run(task.assemble([task.sample(size)]))));
  }
}

/** The curve stored for this model and machine, or measured now and stored. */
async function curveOf(
  { manifest, modelSha256 }: PreparedModel,
  task: Task,
  sessions: SessionPool,
  curves: CurveStore,
): Promise<MeasuredCurve> {
  const [session] = sessions.clients;
  if (!session) throw new Error('a model without sessions');
  const onnxruntimeVersion = ONNXRUNTIME_VERSION;
  const key = {
    modelSha256,
    onnxruntimeVersion,
    device: session.device,
    session: manifest.session,
    simulate: manifest.simulate,
  };
  const stored = await curves.read(key);
  if (stored) return stored;
  const measured = await measureCurve(task, session, manifest.batching);
  // A data folder that can't be written costs the next start a measurement, nothing else.
  await curves.write(key, measured).catch(() => undefined);
  return measured;
}
