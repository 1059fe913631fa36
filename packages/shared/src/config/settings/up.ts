import { choice, text, whole } from '../kinds.js';
import type { SettingSpec } from '../spec.js';

/** What `millrace up` starts. */
export const UP = {
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
} as const satisfies Record<string, SettingSpec>;
