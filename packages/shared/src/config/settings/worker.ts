import { choice, flag, port, text, whole } from '../kinds.js';
import type { SettingSpec } from '../spec.js';

/** The worker. */
export const WORKER = {
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
  maxRunMs: {
    env: 'MILLRACE_MAX_RUN_MS',
    flag: 'max-run-ms',
    of: 'worker',
    help: 'A run of the model that takes longer than this, in ms, and longer than ten times its prediction, counts as hung: the worker gives its other work back and ends itself with SIGKILL, the work runs elsewhere. Lower it where runs are short and inputs may hang.',
    schema: whole(100).default(30_000),
  },
  bulkRunMs: {
    env: 'MILLRACE_BULK_RUN_MS',
    flag: 'bulk-run-ms',
    of: 'worker',
    help: 'Longest predicted run with bulk work in it while interactive work was seen in the last second, in ms. Lower it where interactive requests must not wait, raise it for more bulk throughput beside them.',
    schema: whole(1).default(10),
  },
  agingMs: {
    env: 'MILLRACE_AGING_MS',
    flag: 'aging-ms',
    of: 'worker',
    help: 'After waiting this long behind more urgent work, in ms, a job goes on as interactive; at most a tenth of what is answered is raised so. Lower it where bulk work must not wait long.',
    schema: whole(1).default(30_000),
  },
  prefetchMs: {
    env: 'MILLRACE_PREFETCH_MS',
    flag: 'prefetch-ms',
    of: 'worker',
    help: 'Most work a worker holds beyond what runs, in ms of predicted run time, while the queue has more; otherwise a twelfth of it. The more there is to choose from, the less is padded: more serves more, less keeps priorities and other workers fair.',
    schema: whole(12).default(240),
  },
} as const satisfies Record<string, SettingSpec>;
