import { homedir } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import { choice, flag, keyEntries, names, port, text, whole } from './kinds.js';
import type { SettingSpec } from './spec.js';

export type { SettingSpec };

const KIB = 1024;
const MIB = 1024 * KIB;

/** Every setting, once: `--help`, the README's table and the loader are all made from this. */
export const SETTINGS = {
  redisUrl: {
    env: 'REDIS_URL',
    alias: 'MILLRACE_REDIS_URL',
    flag: 'redis-url',
    of: 'all',
    help: 'Redis to use: redis://, rediss:// or unix:///socket?password=... Without one, `millrace up` starts a private Redis; a gateway or worker by itself needs it.',
    secret: true,
    schema: text.default(''),
  },
  models: {
    env: 'MILLRACE_MODELS',
    flag: 'models',
    of: 'all',
    help: 'Names of the models to serve, with commas between. Readiness waits for all of them.',
    schema: names.default(['all-minilm-l6-v2', 'identity']),
  },
  modelsDir: {
    env: 'MILLRACE_MODELS_DIR',
    flag: 'models-dir',
    of: 'all',
    help: 'Folder of model manifests, one folder a model. Where the current folder has no models, those that came with Millrace.',
    schema: text.default('models'),
  },
  cacheDir: {
    env: 'MILLRACE_CACHE_DIR',
    flag: 'cache-dir',
    of: 'all',
    help: 'Where fetched weights and built models are kept.',
    defaultText: '~/.cache/millrace',
    schema: text.default(() => join(homedir(), '.cache', 'millrace')),
  },
  dataDir: {
    env: 'MILLRACE_DATA_DIR',
    flag: 'data-dir',
    of: 'all',
    help: "Data of one installation: the private Redis's files and passwords. Two starts can't share it.",
    schema: text.default('.millrace'),
  },
  logLevel: {
    env: 'MILLRACE_LOG_LEVEL',
    flag: 'log-level',
    of: 'all',
    help: 'Least severe level written to the log: trace, debug, info, warn, error, fatal or silent.',
    schema: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('warn'),
  },
  host: {
    env: 'MILLRACE_HOST',
    flag: 'host',
    of: 'gateway',
    help: 'Address the gateway listens on. Anything but loopback needs API keys.',
    schema: text.min(1, 'must not be empty').default('127.0.0.1'),
  },
  port: {
    env: 'MILLRACE_PORT',
    alias: 'PORT',
    flag: 'port',
    of: 'gateway',
    help: 'Port the gateway listens on; 0 takes a free one.',
    schema: port.default(8080),
  },
  apiKeys: {
    env: 'MILLRACE_API_KEYS',
    flag: 'api-keys',
    of: 'gateway',
    help: 'API keys as NAME=SHA256HEX with commas between; `millrace keys NAME` makes one. Empty: no key is asked for.',
    secret: true,
    schema: keyEntries.default([]),
  },
  allowPublic: {
    env: 'MILLRACE_ALLOW_PUBLIC',
    flag: 'allow-public',
    of: 'gateway',
    help: 'Listen on a public address without API keys all the same.',
    schema: flag.default(false),
  },
  waitMs: {
    env: 'MILLRACE_WAIT_MS',
    flag: 'wait-ms',
    of: 'gateway',
    help: "How long a request waits for its answer when it doesn't say, in ms; then 504 and its work is cancelled.",
    schema: whole(1).default(10_000),
  },
  maxWaitMs: {
    env: 'MILLRACE_MAX_WAIT_MS',
    flag: 'max-wait-ms',
    of: 'gateway',
    help: 'Longest wait a request may ask for, in ms; more is cut to this.',
    schema: whole(1).default(60_000),
  },
  maxBodyBytes: {
    env: 'MILLRACE_MAX_BODY_BYTES',
    flag: 'max-body-bytes',
    of: 'gateway',
    help: 'Largest request body, in bytes.',
    schema: whole(KIB).default(8 * MIB),
  },
  maxJsonDepth: {
    env: 'MILLRACE_MAX_JSON_DEPTH',
    flag: 'max-json-depth',
    of: 'gateway',
    help: 'Deepest nesting of a JSON body.',
    schema: whole(4, 1000).default(32),
  },
  maxJobItems: {
    env: 'MILLRACE_MAX_JOB_ITEMS',
    flag: 'max-job-items',
    of: 'gateway',
    help: 'Items of a request that travel in one job; a longer list is spread over several jobs and workers.',
    schema: whole(1, 1024).default(32),
  },
  maxQueuedItems: {
    env: 'MILLRACE_MAX_QUEUED_ITEMS',
    flag: 'max-queued-items',
    of: 'gateway',
    help: 'Items that may wait on one model before requests are refused with 429.',
    schema: whole(1).default(20_000),
  },
  maxQueuedBytes: {
    env: 'MILLRACE_MAX_QUEUED_BYTES',
    flag: 'max-queued-bytes',
    of: 'gateway',
    help: "Input bytes that one gateway may have waiting before it refuses with 429. Keep it well under Redis's maxmemory.",
    schema: whole(KIB).default(128 * MIB),
  },
  dashboardPassword: {
    env: 'MILLRACE_DASHBOARD_PASSWORD',
    flag: 'dashboard-password',
    of: 'gateway',
    help: 'Password of the dashboard; the user is "admin". Without one, `millrace up` makes one per data folder and prints it; a gateway by itself has no dashboard.',
    secret: true,
    schema: text.default(''),
  },
  dashboardAdmin: {
    env: 'MILLRACE_DASHBOARD_ADMIN',
    flag: 'dashboard-admin',
    of: 'gateway',
    help: 'Let the dashboard retry, remove and pause; otherwise it only shows.',
    schema: flag.default(false),
  },
  keepCompletedJobs: {
    env: 'MILLRACE_KEEP_COMPLETED_JOBS',
    flag: 'keep-completed-jobs',
    of: 'gateway',
    help: 'Completed jobs kept per queue for the dashboard.',
    schema: whole(0).default(1000),
  },
  keepFailedJobs: {
    env: 'MILLRACE_KEEP_FAILED_JOBS',
    flag: 'keep-failed-jobs',
    of: 'gateway',
    help: 'Failed jobs kept per queue for the dashboard and for retries.',
    schema: whole(0).default(1000),
  },
  graceMs: {
    env: 'MILLRACE_GRACE_MS',
    flag: 'grace-ms',
    of: 'all',
    help: 'After SIGTERM, how long a process may take to finish what it holds, in ms.',
    schema: whole(0).default(15_000),
  },
  workers: {
    env: 'MILLRACE_WORKERS',
    flag: 'workers',
    of: 'up',
    help: 'Worker processes that `millrace up` starts. One fills a small machine: its session threads take the cores.',
    schema: whole(1, 64).default(1),
  },
  redisMaxMemory: {
    env: 'MILLRACE_REDIS_MAX_MEMORY',
    flag: 'redis-max-memory',
    of: 'up',
    help: 'Memory limit of the private Redis, as Redis reads it: 512mb, 2gb.',
    defaultText: "a quarter of the machine's, at most 4 GiB",
    schema: text.regex(/^([1-9][0-9]*(b|k|kb|m|mb|g|gb)?)?$/i, 'must be a size such as 512mb').default(''),
  },
  redisFsync: {
    env: 'MILLRACE_REDIS_FSYNC',
    flag: 'redis-fsync',
    of: 'up',
    help: 'When the private Redis forces its file to disk: everysec, or always, which loses nothing in a crash and is slower.',
    schema: choice(['everysec', 'always']).default('everysec'),
  },
  workerHost: {
    env: 'MILLRACE_WORKER_HOST',
    flag: 'worker-host',
    of: 'worker',
    help: "Address of a worker's health and metrics port.",
    schema: text.min(1, 'must not be empty').default('127.0.0.1'),
  },
  workerPort: {
    env: 'MILLRACE_WORKER_PORT',
    flag: 'worker-port',
    of: 'worker',
    help: "Port of a worker's health and metrics; 0 takes a free one.",
    schema: port.default(0),
  },
  sessionThreads: {
    env: 'MILLRACE_SESSION_THREADS',
    flag: 'session-threads',
    of: 'worker',
    help: 'Threads a model, each with a session of its own; 0 takes what the manifest says, or one a core.',
    schema: whole(0, 256).default(0),
  },
  device: {
    env: 'MILLRACE_DEVICE',
    flag: 'device',
    of: 'worker',
    help: 'cpu or cuda. If CUDA cannot be loaded, the worker says so loudly and uses the CPU.',
    schema: choice(['cpu', 'cuda']).default('cpu'),
  },
  allowSimulated: {
    env: 'MILLRACE_ALLOW_SIMULATED',
    flag: 'allow-simulated',
    of: 'worker',
    help: 'Serve models whose manifest simulates a device. Their times mean nothing but to a benchmark.',
    schema: flag.default(false),
  },
  preprocessThreads: {
    env: 'MILLRACE_PREPROCESS_THREADS',
    flag: 'preprocess-threads',
    of: 'worker',
    help: 'Threads that prepare inputs (tokenize).',
    schema: whole(1, 64).default(1),
  },
  prefetchMs: {
    env: 'MILLRACE_PREFETCH_MS',
    flag: 'prefetch-ms',
    of: 'worker',
    help: 'How much work a worker may hold beyond what runs, in ms of predicted run time. More smooths, less keeps priorities and other workers fair.',
    schema: whole(1).default(20),
  },
} as const satisfies Record<string, SettingSpec>;

export type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [K in SettingName]: z.output<(typeof SETTINGS)[K]['schema']> };
