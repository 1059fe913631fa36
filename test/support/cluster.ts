import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type PrivateRedis, startPrivateRedis } from '@millrace/cli';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = join(ROOT, 'apps', 'cli', 'dist', 'main.js');

/** One gateway or worker as a process of its own. */
export interface ClusterProcess {
  /** A gateway's base URL; a worker's health URL. */
  readonly url: string;
  /** HOST:PORT of a gateway's gRPC door; absent where that is off. */
  readonly grpc?: string;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** What a process says of itself, as far as it is read here. */
interface Message {
  type: string;
  url?: string;
  grpc?: { address: string };
  sentence?: string;
}

export interface ClusterOptions {
  models: string[];
  gateways?: number;
  workers?: number;
  /** Further settings by their environment variables. */
  env?: Record<string, string>;
  /** What the processes print is added to this file; without one it goes where this process's output goes. */
  logFile?: string;
  /** `always`: what Redis acknowledged is there after its kill. */
  appendfsync?: 'everysec' | 'always';
}

/** Gateways, workers and a Redis of their own: real processes, ended with the test. */
export class Cluster {
  readonly gateways: ClusterProcess[] = [];
  readonly workers: ClusterProcess[] = [];
  readonly #children = new Set<ChildProcess>();

  private constructor(
    readonly redis: PrivateRedis,
    readonly folder: string,
    private readonly env: Record<string, string>,
    private readonly logFile: string | undefined,
  ) {}

  /** Resolves when all of it serves. */
  static async start({
    models,
    gateways = 1,
    workers = 1,
    env = {},
    logFile,
    appendfsync = 'everysec',
  }: ClusterOptions): Promise<Cluster> {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-cluster-'));
    const redis = await startPrivateRedis({
      dataDir: folder,
      enableDebug: true,
      maxmemory: '512mb',
      appendfsync,
    });
    const settings = {
      REDIS_URL: redis.url,
      MILLRACE_MODELS: models.join(','),
      MILLRACE_PORT: '0',
      MILLRACE_DATA_DIR: folder,
      MILLRACE_LOG_LEVEL: 'error',
      ...env,
    };
    const cluster = new Cluster(redis, folder, settings, logFile);
    try {
      await Promise.all([
        ...Array.from({ length: workers }, () => cluster.addWorker()),
        ...Array.from({ length: gateways }, () => cluster.addGateway()),
      ]);
      await Promise.all(cluster.gateways.map(({ url }) => cluster.untilReady(url)));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** The first gateway's base URL. */
  get url(): string {
    return this.gateways[0]?.url ?? '';
  }

  async addGateway(env: Record<string, string> = {}): Promise<ClusterProcess> {
    const gateway = await this.#fork('gateway', env);
    this.gateways.push(gateway);
    return gateway;
  }

  async addWorker(env: Record<string, string> = {}): Promise<ClusterProcess> {
    const worker = await this.#fork('worker', env);
    this.workers.push(worker);
    return worker;
  }

  async #fork(command: string, env: Record<string, string>): Promise<ClusterProcess> {
    const log = this.logFile === undefined ? undefined : openSync(this.logFile, 'a');
    const output = log ?? 'inherit';
    const child = fork(MAIN, [command], {
      cwd: ROOT,
      env: { ...process.env, ...this.env, ...env },
      stdio: ['ignore', output, output, 'ipc'],
    });
    if (log !== undefined) closeSync(log);
    this.#children.add(child);
    const ended = once(child, 'exit').then(([code, signal]) => {
      this.#children.delete(child);
      return (signal ?? code) as number | NodeJS.Signals;
    });
    const { url = '', grpc } = await Promise.race([
      new Promise<Message>((resolve, reject) => {
        child.on('message', (message: Message) => {
          if (message.type === 'ready') resolve(message);
          if (message.type === 'refused') reject(new Error(message.sentence));
        });
      }),
      ended.then((how) => {
        throw new Error(`${command} ended with ${how} before it served`);
      }),
    ]);
    return {
      url,
      ...(grpc ? { grpc: grpc.address } : {}),
      pid: child.pid ?? 0,
      kill: (signal) => void child.kill(signal),
      ended,
    };
  }

  /** Resolves when the gateway at `url` serves every model. */
  async untilReady(url: string): Promise<void> {
    while (!(await fetch(`${url}/v2/health/ready`).catch(() => undefined))?.ok) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async stop(): Promise<void> {
    const children = [...this.#children];
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(
      children
        .filter((child) => child.exitCode === null && child.signalCode === null)
        .map((child) => once(child, 'exit')),
    );
    await this.redis.stop();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
