import type { Redis } from 'ioredis';
import type { Operation } from './job.js';
import { REGISTRY_ANNOUNCEMENTS_KEY, REGISTRY_EXPIRY_KEY } from './keys.js';
import type { TensorSpec } from './tensor.js';

/** How long an announcement counts without being renewed, in ms; renewed every second. */
export const ANNOUNCEMENT_TTL_MS = 3000;

export type WorkerState = 'starting' | 'warming' | 'serving' | 'draining' | 'stopped';
export type TaskName = 'text-embedding' | 'tensor';

/** All that a gateway knows of a model: it has no manifests of its own. */
export interface ModelDescription {
  name: string;
  version: string;
  task: TaskName;
  /** Open Inference Protocol platform name: `onnxruntime_onnx`. */
  platform: string;
  /** What doors take and give, items on the first axis: for text-embedding BYTES `text` -> FP32 `embedding`. */
  inputs: TensorSpec[];
  outputs: TensorSpec[];
  limits: { maxRequestItems: number; maxTokens?: number };
  /** Significant digits of floats in JSON answers; absent: exact. */
  jsonDigits?: number;
  /** Embeddings may be cut to so many numbers or more, and scaled to length 1 again; absent: not at all. */
  minDimensions?: number;
  /** What this worker does with the model besides its own run. */
  operations?: readonly Operation[];
  /** How a text model treats texts and makes embeddings. */
  text?: TextTraits;
  /** What runs take on this worker. */
  cost?: ModelCost;
}

/** What clients of a text-embedding model may ask about it. */
export interface TextTraits {
  /** What becomes of a text over `limits.maxTokens` where its request doesn't say. */
  overflow: 'truncate' | 'refuse';
  /** Whether the model itself scales its embeddings to length 1; absent: not known. */
  normalized?: boolean;
  /** How token vectors become one; absent: not known. */
  pooling?: 'mean' | 'cls';
  /** What its weights are; absent: not known. */
  precision?: 'fp32' | 'int8';
  /** Most texts, and most padded tokens, in one run. */
  maxBatchItems: number;
  maxBatchTokens: number;
  /** Threads that tokenize in each worker. */
  tokenizerThreads: number;
}

/** Predicted ms of one run: correction * (fixed + batch * (perItem + size * (perUnit + size * perSquare))). */
export interface ModelCost {
  fixed: number;
  perItem: number;
  perUnit: number;
  perSquare: number;
  correction: number;
  /** Sessions that run side by side. */
  sessions: number;
  /** Items a second that its sessions can run, by what runs took lately. */
  capacity: number;
  /** Items a second that it answered lately. */
  answered: number;
}

export interface WorkerAnnouncement {
  id: string;
  host: string;
  pid: number;
  state: WorkerState;
  contractVersions: number[];
  startedAt: number;
  models: ModelDescription[];
}

/** Announces a worker, or renews it. `now` is epoch ms of Redis's clock. */
export async function announce(redis: Redis, worker: WorkerAnnouncement, now: number): Promise<void> {
  await redis
    .multi()
    .hset(REGISTRY_ANNOUNCEMENTS_KEY, worker.id, JSON.stringify(worker))
    .zadd(REGISTRY_EXPIRY_KEY, now + ANNOUNCEMENT_TTL_MS, worker.id)
    .exec();
}

export async function withdraw(redis: Redis, workerId: string): Promise<void> {
  await redis.multi().hdel(REGISTRY_ANNOUNCEMENTS_KEY, workerId).zrem(REGISTRY_EXPIRY_KEY, workerId).exec();
}

/** The workers whose announcement has not expired, and clears away those expired for a minute. */
export async function readRegistry(redis: Redis, now: number): Promise<WorkerAnnouncement[]> {
  const [live, expired, all] = await Promise.all([
    redis.zrangebyscore(REGISTRY_EXPIRY_KEY, now, '+inf'),
    redis.zrangebyscore(REGISTRY_EXPIRY_KEY, '-inf', now - 60_000),
    redis.hgetall(REGISTRY_ANNOUNCEMENTS_KEY),
  ]);
  for (const id of expired) await withdraw(redis, id);
  const alive = new Set(live);
  const workers: WorkerAnnouncement[] = [];
  for (const [id, json] of Object.entries(all)) {
    const worker = alive.has(id) ? parseAnnouncement(json) : undefined;
    if (worker) workers.push(worker);
  }
  return workers;
}

/** An announcement that can't be read counts as none: it must not hide the others. */
function parseAnnouncement(json: string): WorkerAnnouncement | undefined {
  try {
    const worker = JSON.parse(json) as Partial<WorkerAnnouncement> | null;
    const sound =
      typeof worker?.id === 'string' &&
      Array.isArray(worker.models) &&
      worker.models.every((model) => typeof model?.name === 'string' && typeof model.version === 'string');
    return sound ? (worker as WorkerAnnouncement) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a worker instance is alive by the registry. `now` is epoch ms of Redis's clock. */
export async function isAlive(redis: Redis, workerId: string, now: number): Promise<boolean> {
  const expiry = await redis.zscore(REGISTRY_EXPIRY_KEY, workerId);
  return expiry !== null && Number(expiry) >= now;
}
