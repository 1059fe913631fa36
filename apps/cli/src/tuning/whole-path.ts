import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, Releasers, type SessionOptions, type Settings, settingsToEnv } from '@millrace/shared';
import type { PreparedModel } from '@millrace/worker';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { startPrivateRedis } from '../redis/private-redis.js';
import { startChild } from '../up/child-process.js';
import { untilGatewayReady } from '../up/ready.js';
import { Supervised } from '../up/supervised.js';
import type { LoadResult, LoadSpec } from './load.js';

const CLIENTS = 64;
const WARM_UP_MS = 700;
const GRACE_MS = 5000;

/**
 * A gateway and a Redis of their own, and one worker after another: each with options to be measured, which
 * it finds in its data folder as serving does. Everything ends with `close`.
 */
export class WholePath {
  readonly #releasers = new Releasers();
  #url = '';
  #env: Record<string, string> = {};

  private constructor(
    private readonly host: Host,
    private readonly settings: Settings,
    private readonly prepared: PreparedModel,
    private readonly bodies: object[],
    private readonly folder: string,
  ) {}

  static async start(
    host: Host,
    settings: Settings,
    prepared: PreparedModel,
    bodies: object[],
  ): Promise<WholePath> {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-tune-'));
    const path = new WholePath(host, settings, prepared, bodies, folder);
    path.#releasers.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    try {
      await path.#start();
      return path;
    } catch (error) {
      await path.close();
      throw error;
    }
  }

  async #start(): Promise<void> {
    const { host, settings, folder, prepared } = this;
    const redis = await startPrivateRedis({ dataDir: folder, maxmemory: '512mb', say: host.say });
    this.#releasers.push(() => redis.stop());
    const own = {
      redisUrl: redis.url,
      models: [prepared.manifest.name],
      host: '127.0.0.1',
      port: 0,
      workerPort: 0,
      apiKeys: [],
      logLevel: 'error' as const,
      dataDir: folder,
    };
    this.#env = { ...processEnv(host), ...settingsToEnv({ ...settings, ...own }) };
    const gateway = this.#child('gateway', folder);
    this.#releasers.push(() => gateway.stop(GRACE_MS));
    this.#url = (await gateway.start()).url;
  }

  /**
   * Starts a worker with these options, loads it from another process for `measureMs`, ends it.
   * @param label a folder name of its own for each set of options: its curve is measured once.
   */
  async measure(label: string, options: SessionOptions, measureMs: number): Promise<LoadResult> {
    const dataDir = join(this.folder, label);
    const { storeTuning } = await loadWorker();
    const logger = createLogger('silent', {});
    await storeTuning(dataDir, logger, this.prepared, this.settings, options);
    const worker = this.#child('worker', dataDir);
    try {
      await worker.start();
      await untilGatewayReady(this.#url, this.host.stop.asked);
      return await this.#load(measureMs);
    } finally {
      await worker.stop(GRACE_MS);
    }
  }

  /** Keeps the curve that was measured for the options that won: the next start needn't. */
  async keepCurves(label: string): Promise<void> {
    const from = join(this.folder, label, 'curves');
    // Without them the next start measures: nothing worse.
    await cp(from, join(this.settings.dataDir, 'curves'), { recursive: true }).catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#releasers.release();
  }

  #child(command: 'gateway' | 'worker', dataDir: string): Supervised {
    const { host } = this;
    const env = { ...this.#env, MILLRACE_DATA_DIR: dataDir };
    return new Supervised(() => ({ name: command, mainFile: host.mainFile, args: [command], env }), host.say);
  }

  async #load(measureMs: number): Promise<LoadResult> {
    const { name } = this.prepared.manifest;
    const url = `${this.#url}/v2/models/${name}/infer`;
    const spec: LoadSpec = { url, bodies: this.bodies, clients: CLIENTS, warmUpMs: WARM_UP_MS, measureMs };
    const file = join(this.folder, 'load.json');
    await writeFile(file, JSON.stringify(spec));
    const child = startChild({
      name: 'load',
      mainFile: this.host.mainFile,
      args: ['load', file],
      env: this.#env,
    });
    let result: LoadResult | undefined;
    child.onMessage((message) => {
      if (message.type === 'loaded') result = message;
    });
    const { asked } = this.host.stop;
    const end = (): void => child.signal('SIGTERM');
    asked.addEventListener('abort', end);
    const how = await child.ended;
    asked.removeEventListener('abort', end);
    return result ?? { requestsPerSecond: 0, failed: 1, reason: `the load ended with ${how}` };
  }
}

function processEnv(host: Host): Record<string, string> {
  return Object.fromEntries(
    Object.entries(host.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
