import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis, StartupError } from '@millrace/shared';
import { Backoff, secondsText } from '../up/backoff.js';
import { defaultMaxmemory, keptPassword, writeConfig } from './config-file.js';
import { ensureRedisServer } from './find-server.js';
import { accepts, type ServerFiles, type ServerProcess, startServer } from './server-process.js';
import { socketFolder } from './socket-folder.js';

export interface PrivateRedisOptions {
  /** Its files go into `<dataDir>/redis`; the same folder again brings back the same data and address. */
  dataDir: string;
  /** As Redis reads it: `512mb`. Default: a quarter of the machine's memory. */
  maxmemory?: string;
  /** `always` survives a crash of the machine without losing an accepted job, at the price of speed. */
  appendfsync?: 'everysec' | 'always';
  /** Allow DEBUG from this machine; for tests. */
  enableDebug?: boolean;
  /** Start it again, with backoff, when it dies unasked. */
  keepAlive?: boolean;
  /** What a person should read: an install, a death. */
  say?: (line: string) => void;
}

export interface PrivateRedis {
  /** For `connectRedis`; stays the same over restarts. */
  readonly url: string;
  /** Of the server running now, or of the last one. */
  readonly pid: number;
  /** Ends it in order: everything written is in its file. */
  stop(): Promise<void>;
  /** Ends it as a crash would. */
  kill9(): Promise<void>;
  /** Starts it again after `stop` or `kill9`: same data, same address. */
  start(): Promise<void>;
}

/**
 * Starts a redis-server (or valkey-server) of our own, on a unix socket only its owner can reach.
 * @throws StartupError when there is none and none can be installed, or when it can't start.
 */
export async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const say = options.say ?? (() => undefined);
  const dir = resolve(options.dataDir, 'redis');
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const files: ServerFiles = {
    binary: await ensureRedisServer(say),
    configFile: join(dir, 'redis.conf'),
    logFile: join(dir, 'redis.log'),
    socket: join(await socketFolder(options.dataDir), 'redis.sock'),
  };
  const password = await keptPassword(dir, 'password');
  const url = `unix://${encodeURI(files.socket)}?password=${encodeURIComponent(password)}`;
  await endLeftover(files.socket, url);
  await writeConfig(files.configFile, {
    socket: files.socket,
    password,
    dir,
    logFile: files.logFile,
    maxmemory: options.maxmemory || defaultMaxmemory(),
    appendfsync: options.appendfsync ?? 'everysec',
    enableDebug: options.enableDebug ?? false,
  });
  const redis = new WatchedRedis(files, url, options.keepAlive ?? false, say);
  await redis.start();
  return redis;
}

/** Modes: stopped (nobody wants it running) and wanted (it runs, or is about to be started again). */
class WatchedRedis implements PrivateRedis {
  #server: ServerProcess | undefined;
  #wanted = false;
  #restart: AbortController | undefined;
  readonly #backoff = new Backoff();

  constructor(
    readonly files: ServerFiles,
    readonly url: string,
    readonly keepAlive: boolean,
    readonly say: (line: string) => void,
  ) {}

  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  async start(): Promise<void> {
    if (this.#wanted) return;
    this.#wanted = true;
    await this.#run();
  }

  async stop(): Promise<void> {
    this.#notWanted();
    await this.#server?.stop();
  }

  async kill9(): Promise<void> {
    this.#notWanted();
    await this.#server?.kill9();
  }

  #notWanted(): void {
    this.#wanted = false;
    this.#restart?.abort();
  }

  async #run(): Promise<void> {
    const startedAt = performance.now();
    const server = await startServer(this.files, this.url);
    this.#server = server;
    // A stop that came while it was starting had nothing to end yet.
    if (!this.#wanted) return server.stop();
    void server.ended.then((how) => {
      if (this.#wanted && this.keepAlive) void this.#again(how, performance.now() - startedAt);
    });
  }

  async #again(how: string, ranMs: number): Promise<void> {
    const delay = this.#backoff.delayMs(ranMs);
    this.say(`redis (${this.pid}) ended with ${how}; starting it again in ${secondsText(delay)}`);
    this.#restart = new AbortController();
    try {
      await sleep(delay, undefined, { signal: this.#restart.signal });
      await this.#run();
    } catch (error) {
      if (this.#wanted) await this.#again((error as Error).message, 0);
    }
  }
}

/**
 * After a `kill -9` of its parent, a Redis lives on for a moment. Two servers on one append-only file
 * would ruin it, so an old one is ended first.
 */
async function endLeftover(socket: string, url: string): Promise<void> {
  if (!(await accepts(socket))) return;
  const redis = connectRedis(url, 'subscriber', 'end-leftover');
  // SHUTDOWN has no answer but the closed connection.
  void redis.shutdown().catch(() => undefined);
  const deadline = performance.now() + 5000;
  while (await accepts(socket)) {
    if (performance.now() > deadline) {
      redis.disconnect();
      throw new StartupError(
        `Another Redis listens on ${socket} and does not end.`,
        'End that process, or choose another data folder with --data-dir.',
      );
    }
    await sleep(20);
  }
  redis.disconnect();
}
