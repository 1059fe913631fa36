import { homedir } from 'node:os';
import { join } from 'node:path';
import { choice, names, text, whole } from '../kinds.js';
import type { SettingSpec } from '../spec.js';

/** What every process reads. */
export const COMMON = {
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
    help: "Data of one installation: the private Redis's files and passwords, and the files that clients store. Two starts can't share it.",
    schema: text.default('.millrace'),
  },
  teiModel: {
    env: 'MILLRACE_TEI_MODEL',
    flag: 'tei-model',
    of: 'gateway',
    help: "Model behind text-embeddings-inference's addresses, which name none (/embed, /tokenize, /info and so on). Set it where several text-embedding models are served.",
    defaultText: 'the first text-embedding model of `models`',
    schema: text.default(''),
  },
  logLevel: {
    env: 'MILLRACE_LOG_LEVEL',
    flag: 'log-level',
    of: 'all',
    help: 'Least severe level written to the log: trace, debug, info, warn, error, fatal or silent.',
    schema: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('warn'),
  },
  graceMs: {
    env: 'MILLRACE_GRACE_MS',
    flag: 'grace-ms',
    of: 'all',
    help: 'After SIGTERM, how long a process may take to finish what it holds, in ms.',
    schema: whole(0).default(15_000),
  },
} as const satisfies Record<string, SettingSpec>;
