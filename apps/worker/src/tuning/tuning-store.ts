import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { arch, availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Logger, SessionOptions } from '@millrace/shared';
import { z } from 'zod';

/** All that a choice of session options depends on, but for the machine, which the file names. */
export interface TuningKey {
  modelSha256: string;
  onnxruntimeVersion: string;
  device: string;
}

/** More threads than any machine has would hang a start, not fail it. */
const threads = z.int().min(1).max(256);

const sessionSchema = z.strictObject({
  threads,
  intraOpThreads: threads,
  allowSpinning: z.boolean(),
  graphOptimizationLevel: z.enum(['disabled', 'basic', 'extended', 'all']),
  disabledOptimizers: z.array(z.string()),
});

const storedSchema = z.object({
  machine: z.string(),
  session: sessionSchema,
  /** The manifest's options at that time: what a person changed since is not overruled. */
  insteadOf: z.unknown(),
});

/** Session options that were found best on this machine, one file a model in the data folder. */
export class TuningStore {
  readonly #folder: string;
  readonly #logger: Pick<Logger, 'warn'>;

  constructor(dataDir: string, logger: Pick<Logger, 'warn'>) {
    this.#folder = join(dataDir, 'tuning');
    this.#logger = logger;
  }

  /**
   * The options to serve with here, or undefined when none are stored, or they are broken, were found on
   * another machine or for other options in the manifest; all but the first are said.
   */
  async read(key: TuningKey, manifest: SessionOptions): Promise<SessionOptions | undefined> {
    const path = this.path(key);
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    const parsed = storedSchema.safeParse(parseJson(text));
    const fault = parsed.success ? misfit(parsed.data, manifest) : 'is broken';
    if (parsed.success && fault === undefined) return { ...manifest, ...parsed.data.session };
    this.#logger.warn(
      { path },
      `the tuned session options are not used, since the file ${fault}; serving with those of model.yaml`,
    );
    return undefined;
  }

  /** Stores a choice for serving and, where there is one, the report of how it was found. */
  async write(
    key: TuningKey,
    session: SessionOptions,
    manifest: SessionOptions,
    report?: object,
  ): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    const { threads, intraOpThreads, allowSpinning, graphOptimizationLevel, disabledOptimizers } = session;
    const chosen = { threads, intraOpThreads, allowSpinning, graphOptimizationLevel, disabledOptimizers };
    await writeWhole(this.path(key), { machine: machine(), session: chosen, insteadOf: manifest });
    if (report) await writeWhole(this.reportPath(key), { machine: machine(), ...report });
  }

  path(key: TuningKey): string {
    return join(this.#folder, `${hash(key)}.json`);
  }

  reportPath(key: TuningKey): string {
    return join(this.#folder, `${hash(key)}.report.json`);
  }
}

function misfit(stored: z.output<typeof storedSchema>, manifest: SessionOptions): string | undefined {
  if (stored.machine !== machine()) return `was made on another machine (${stored.machine})`;
  if (!isDeepStrictEqual(stored.insteadOf, manifest))
    return 'was made for other session options in model.yaml';
  return undefined;
}

/** What thread counts and kernels are chosen for. */
function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown'} ${arch()}, ${availableParallelism()} cores`;
}

function hash({ modelSha256, onnxruntimeVersion, device }: TuningKey): string {
  const text = JSON.stringify([modelSha256, onnxruntimeVersion, device]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

async function writeWhole(path: string, content: object): Promise<void> {
  await writeFile(`${path}.part`, `${JSON.stringify(content, undefined, 2)}\n`);
  await rename(`${path}.part`, path);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
