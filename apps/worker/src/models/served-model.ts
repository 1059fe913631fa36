import { availableParallelism } from 'node:os';
import { type Logger, type Manifest, type Settings, StartupError } from '@millrace/shared';
import { SessionPool } from '../session/session-pool.js';
import type { PreprocessPool } from '../tasks/preprocess-pool.js';
import type { Task } from '../tasks/task.js';
import { TensorTask } from '../tasks/tensor.js';
import { TextEmbedding } from '../tasks/text-embedding.js';
import type { PreparedModel } from './prepare.js';

/** Runs of the warm-up at each size; the last one's time is the first prediction. */
const WARM_UP_RUNS = 3;

/** A model loaded into its sessions and warm. */
export class ServedModel {
  private constructor(
    readonly manifest: Manifest,
    readonly task: Task,
    readonly sessions: SessionPool,
    /** Milliseconds per unit of size, from the warm-up. */
    readonly msPerUnit: number,
  ) {}

  /** @throws StartupError when onnxruntime can't load the model. */
  static async load(
    prepared: PreparedModel,
    settings: Settings,
    preprocess: PreprocessPool,
    logger: Logger,
  ): Promise<ServedModel> {
    const { manifest, modelFile } = prepared;
    const threads = settings.sessionThreads || manifest.session.threads || defaultThreads(manifest);
    let sessions: SessionPool;
    try {
      sessions = await SessionPool.open(threads, {
        modelFile,
        device: settings.device,
        session: manifest.session,
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
    return new ServedModel(manifest, task, sessions, await warmUp(task, sessions));
  }

  async close(): Promise<void> {
    await this.sessions.release();
  }
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

async function warmUp(task: Task, sessions: SessionPool): Promise<number> {
  let msPerUnit = 0.05;
  for (const item of await task.warmUp()) {
    for (let run = 0; run < WARM_UP_RUNS; run++) {
      const results = await Promise.all(sessions.clients.map((client) => client.run(task.assemble([item]))));
      const slowest = Math.max(...results.map(({ runMs }) => runMs));
      msPerUnit = slowest / item.size;
    }
  }
  return msPerUnit;
}
