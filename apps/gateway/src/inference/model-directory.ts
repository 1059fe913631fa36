import {
  type GatewayMetrics,
  type Logger,
  MillraceError,
  type ModelDescription,
  queueName,
  REGISTRY_ANNOUNCEMENTS_KEY,
  type RedisClock,
  readRegistry,
  type WorkerAnnouncement,
} from '@millrace/shared';
import type { Redis } from 'ioredis';

const REFRESH_MS = 1000;
/** While a configured model has no worker, so that a start is noticed at once. */
const HURRY_MS = 100;
/** A reading older than this, in ms, no longer says that Redis is there. */
const FRESH_MS = 3 * REFRESH_MS;
/** A version whose workers are gone this long, in ms, gives way to one that is served. */
const FORGET_MS = 10 * 60_000;
const NO_WORKER_RETRY_SECONDS = 2;
/**
 * When the announcements of all workers lapse at once, it was Redis that was away or took no writes, far more
 * likely than that all have died: they have this long to announce themselves again, in ms.
 */
const LAPSE_MS = 3000;

interface KnownVersion {
  description: ModelDescription;
  queue: string;
  /** Workers that serve it now, and their sessions. */
  serving: number;
  sessions: number;
  /** Items a second that those workers could run, and that they answered lately. */
  capacity: number;
  answered: number;
  /** Start of the first worker that was seen to serve it, in epoch ms of Redis's clock. */
  since: number;
  /** When a worker last announced it, in ms of the monotonic clock. */
  seenAt: number;
}

/** Nobody serves it. */
const NONE = { serving: 0, sessions: 0, capacity: 0, answered: 0 };

/**
 * The models there are, read from the workers' registry once a second. A model stays known while its
 * workers are away, so that it can be said that they are.
 */
export class ModelDirectory {
  readonly #redis: Redis;
  readonly #clock: RedisClock;
  readonly #configured: readonly string[];
  readonly #metrics: GatewayMetrics;
  readonly #logger: Logger;
  readonly #models = new Map<string, Map<string, KnownVersion>>();
  #readAt = Number.NEGATIVE_INFINITY;
  /** The first of the readings in a row that found no worker alive, in ms of the monotonic clock. */
  #lapsedAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(
    redis: Redis,
    clock: RedisClock,
    configured: readonly string[],
    metrics: GatewayMetrics,
    logger: Logger,
  ) {
    this.#redis = redis;
    this.#clock = clock;
    this.#configured = configured;
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /** Reads the registry now, and about every second until {@link stop}. Throws if the first reading fails. */
  async start(): Promise<void> {
    await this.refresh();
    this.#refreshLater();
  }

  #refreshLater(): void {
    this.#timer = setTimeout(
      () => {
        this.refresh()
          .catch((err: unknown) => this.#logger.debug({ err }, 'the registry could not be read'))
          .finally(() => {
            if (!this.#stopped) this.#refreshLater();
          });
      },
      this.missing().length > 0 ? HURRY_MS : REFRESH_MS,
    );
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async refresh(): Promise<void> {
    const workers = await readRegistry(this.#redis, this.#clock.now());
    this.#readAt = performance.now();
    if (workers.length > 0) this.#lapsedAt = undefined;
    else if (await this.#justLapsed()) return;
    for (const known of this.#all()) {
      Object.assign(known, NONE);
    }
    for (const worker of workers) this.#learn(worker);
    for (const [name, versions] of this.#models) {
      this.#forget(versions);
      let serving = 0;
      for (const known of versions.values()) serving += known.serving;
      this.#metrics.workersAlive.set({ model: name }, serving);
    }
  }

  /**
   * The model to ask.
   * @param version absent: the highest.
   * @throws MillraceError `model_not_found` naming those there are; `no_worker` for a configured model that
   * no worker has announced yet.
   */
  resolve(name: string, version?: string): ModelDescription {
    const versions = this.#models.get(name);
    const known = version === undefined ? highest(versions) : versions?.get(version);
    if (known) return known.description;
    if (versions && versions.size > 0) {
      const there = [...versions.keys()].join(', ');
      throw new MillraceError('model_not_found', `Model ${name} has no such version. There are: ${there}.`, {
        field: 'version',
      });
    }
    if (this.#configured.includes(name)) {
      throw new MillraceError('no_worker', undefined, { retryAfterSeconds: NO_WORKER_RETRY_SECONDS });
    }
    const there = this.names().join(', ') || 'none';
    throw new MillraceError('model_not_found', `No such model is served here. There are: ${there}.`, {
      field: 'model',
    });
  }

  /** Names of all models known or configured, sorted. */
  names(): string[] {
    return [...new Set([...this.#models.keys(), ...this.#configured])].sort();
  }

  /** The known versions of a model, lowest first. */
  versions(name: string): string[] {
    return [...(this.#models.get(name)?.keys() ?? [])].sort((a, b) => Number(a) - Number(b));
  }

  /** All known models and versions, by name and version. */
  list(): { description: ModelDescription; queue: string; ready: boolean }[] {
    return this.#all()
      .map(({ description, queue, serving }) => ({ description, queue, ready: serving > 0 }))
      .sort((a, b) => (a.queue < b.queue ? -1 : 1));
  }

  /** Whether a worker serves this version now. */
  isServed(model: ModelDescription): boolean {
    return (this.#models.get(model.name)?.get(model.version)?.serving ?? 0) > 0;
  }

  /** Start of the first worker that was seen to serve this version, in epoch ms of Redis's clock. */
  knownSince(model: ModelDescription): number {
    return this.#models.get(model.name)?.get(model.version)?.since ?? 0;
  }

  /** Sessions of all workers that serve this version now. */
  sessions(model: ModelDescription): number {
    return this.#models.get(model.name)?.get(model.version)?.sessions ?? 0;
  }

  /** Items a second: what the workers of this version could run, and what they answered lately. */
  drain(model: ModelDescription): { capacity: number; answered: number } {
    return this.#models.get(model.name)?.get(model.version) ?? NONE;
  }

  /** Whether the registry was read lately, which proves that Redis answers. */
  get fresh(): boolean {
    return performance.now() - this.#readAt < FRESH_MS;
  }

  /** The configured models that no worker serves now. */
  missing(): string[] {
    return this.#configured.filter((name) => {
      const versions = this.#models.get(name);
      return !versions || ![...versions.values()].some((known) => known.serving > 0);
    });
  }

  /** Whether nobody is alive by the registry, but workers served until a moment ago and did not withdraw. */
  async #justLapsed(): Promise<boolean> {
    if (!this.#all().some(({ serving }) => serving > 0)) return false;
    if ((await this.#redis.hlen(REGISTRY_ANNOUNCEMENTS_KEY)) === 0) return false;
    this.#lapsedAt ??= performance.now();
    return performance.now() - this.#lapsedAt < LAPSE_MS;
  }

  #all(): KnownVersion[] {
    return [...this.#models.values()].flatMap((versions) => [...versions.values()]);
  }

  #learn(worker: WorkerAnnouncement): void {
    for (const description of worker.models) {
      const { name, version } = description;
      const versions = this.#models.get(name) ?? new Map<string, KnownVersion>();
      this.#models.set(name, versions);
      const known = versions.get(version);
      const { serving, sessions, capacity, answered } = known ?? NONE;
      const { cost } = description;
      const serves = worker.state === 'serving';
      versions.set(version, {
        description,
        queue: queueName(name, version),
        serving: serving + (serves ? 1 : 0),
        sessions: sessions + (serves ? (cost?.sessions ?? 1) : 0),
        capacity: capacity + (serves ? (cost?.capacity ?? 0) : 0),
        answered: answered + (serves ? (cost?.answered ?? 0) : 0),
        since: Math.min(known?.since ?? worker.startedAt, worker.startedAt),
        seenAt: performance.now(),
      });
    }
  }

  #forget(versions: Map<string, KnownVersion>): void {
    if (![...versions.values()].some((known) => known.serving > 0)) return;
    for (const [version, known] of versions) {
      if (performance.now() - known.seenAt > FORGET_MS) versions.delete(version);
    }
  }
}

function highest(versions: Map<string, KnownVersion> | undefined): KnownVersion | undefined {
  let best: KnownVersion | undefined;
  for (const known of versions?.values() ?? []) {
    if (!best || Number(known.description.version) > Number(best.description.version)) best = known;
  }
  return best;
}
