import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type ClusterOptions, type ClusterProcess } from '../support/cluster.js';
import type { Death } from './history.js';
import { RedisLink } from './redis-link.js';

/** A start that fails (Redis is away) is tried again after this, in ms. */
const START_AGAIN_MS = 200;
const CLOCK = new URL('./jumping-clock.js', import.meta.url).href;

/** One gateway or worker and its way to Redis. However it ends, it is started again until told to stop. */
export class Member {
  readonly #start: () => Promise<ClusterProcess>;
  readonly #onDeath: (how: string) => void;
  #process: ClusterProcess | undefined;
  #lastUrl = '';
  #started: Promise<void>;
  #expected = false;
  #stopping = false;
  readonly #kept: Promise<void>;

  constructor(
    readonly name: string,
    readonly link: RedisLink,
    start: () => Promise<ClusterProcess>,
    onDeath: (how: string) => void,
  ) {
    this.#start = start;
    this.#onDeath = onDeath;
    let first: (() => void) | undefined;
    this.#started = new Promise((resolve) => {
      first = resolve;
    });
    this.#kept = this.#keep(() => first?.());
  }

  /** Of the process that runs, or of the last one: a client would still call there. */
  get url(): string {
    return this.#process?.url ?? this.#lastUrl;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Resolves when it serves, now or again. */
  async serving(): Promise<void> {
    while (!this.#process) await this.#started;
  }

  /** Ends the process by a signal and resolves when another serves in its place, with how the first one ended. */
  async killAndBack(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | undefined> {
    await this.serving();
    const process = this.#process;
    this.#expected = true;
    process?.kill(signal);
    const how = await process?.ended;
    await this.serving();
    return how;
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    await this.serving();
    this.#process?.kill(signal);
  }

  /** From now on it is not started again. */
  leave(): void {
    this.#stopping = true;
  }

  /** Ends it in order, for good. @returns its exit code or the signal that ended it. */
  async stop(): Promise<number | NodeJS.Signals | undefined> {
    this.leave();
    this.#process?.kill('SIGTERM');
    const how = await this.#process?.ended;
    await this.#kept;
    return how;
  }

  async #keep(started: () => void): Promise<void> {
    let announce = started;
    while (!this.#stopping) {
      try {
        this.#process = await this.#start();
      } catch {
        await sleep(START_AGAIN_MS);
        continue;
      }
      this.#lastUrl = this.#process.url;
      announce();
      if (this.#stopping) this.#process.kill('SIGTERM');
      const how = await this.#process.ended;
      if (this.#stopping) return;
      this.#started = new Promise((resolve) => {
        announce = resolve;
      });
      this.#process = undefined;
      if (!this.#expected) this.#onDeath(String(how));
      this.#expected = false;
    }
  }
}

export interface ChaosClusterOptions extends Pick<ClusterOptions, 'models' | 'logFile'> {
  gateways: number;
  workers: number;
  env: Record<string, string>;
  now(): number;
}

/** Gateways and workers that are kept alive, each with a Redis link of its own. */
export class ChaosCluster {
  readonly gateways: Member[] = [];
  readonly workers: Member[] = [];
  readonly deaths: Death[] = [];
  readonly #base: Cluster;

  private constructor(base: Cluster) {
    this.#base = base;
  }

  static async start({ gateways, workers, now, ...options }: ChaosClusterOptions): Promise<ChaosCluster> {
    // A 202 is a promise through a crash of Redis with this alone.
    const base = await Cluster.start({ ...options, gateways: 0, workers: 0, appendfsync: 'always' });
    const cluster = new ChaosCluster(base);
    const member = async (kind: 'gateway' | 'worker', number: number): Promise<Member> => {
      const name = `${kind}-${number}`;
      const { link, url } = await RedisLink.to(base.redis.url);
      const env = { REDIS_URL: url, NODE_OPTIONS: `--import ${CLOCK}` };
      const start = () => (kind === 'gateway' ? base.addGateway(env) : base.addWorker(env));
      return new Member(name, link, start, (how) => {
        cluster.deaths.push({ process: name, at: now(), how });
      });
    };
    for (let n = 1; n <= gateways; n++) cluster.gateways.push(await member('gateway', n));
    for (let n = 1; n <= workers; n++) cluster.workers.push(await member('worker', n));
    await Promise.all(cluster.members.map((each) => each.serving()));
    await Promise.all(cluster.gateways.map(({ url }) => base.untilReady(url)));
    return cluster;
  }

  get redis(): Cluster['redis'] {
    return this.#base.redis;
  }

  /** Where all its gateways keep the files of clients. */
  get filesDir(): string {
    return join(this.#base.folder, 'files');
  }

  get members(): Member[] {
    return [...this.gateways, ...this.workers];
  }

  get gatewayUrls(): string[] {
    return this.gateways.map(({ url }) => url);
  }

  /** Ends all in order, gateways first. @returns who did not end with 0, a sentence each. */
  async stop(): Promise<string[]> {
    const faults: string[] = [];
    for (const members of [this.gateways, this.workers]) {
      await Promise.all(
        members.map(async (each) => {
          const how = await each.stop();
          if (how !== 0) faults.push(`${each.name} ended with ${how} when it was told to stop`);
        }),
      );
    }
    await this.end();
    return faults;
  }

  /** Ends all at once; safe to call again. */
  async end(): Promise<void> {
    for (const each of this.members) each.leave();
    await this.#base.stop();
    await Promise.all(this.members.map(({ link }) => link.close()));
  }
}
