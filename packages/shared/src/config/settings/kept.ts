import { flag, names, text, whole } from '../kinds.js';
import type { SettingSpec } from '../spec.js';

const KIB = 1024;
const MIB = 1024 * KIB;

/** The gateway: what it keeps of requests, whom it tells, and what it shows. */
export const KEPT = {
  jobKeepMs: {
    env: 'MILLRACE_JOB_KEEP_MS',
    flag: 'job-keep-ms',
    of: 'gateway',
    help: "How long a durable request may take and its result is kept, in ms from when it was received, where it doesn't say; then 410.",
    schema: whole(1000).default(3_600_000),
  },
  maxJobKeepMs: {
    env: 'MILLRACE_MAX_JOB_KEEP_MS',
    flag: 'max-job-keep-ms',
    of: 'gateway',
    help: 'Longest that a durable request may ask to be kept, in ms; more is cut to this.',
    schema: whole(1000).default(86_400_000),
  },
  maxJobsPerKey: {
    env: 'MILLRACE_MAX_JOBS_PER_KEY',
    flag: 'max-jobs-per-key',
    of: 'gateway',
    help: 'Durable requests that one API key may have kept; more are refused with 429.',
    schema: whole(1).default(10_000),
  },
  maxJobBytesPerKey: {
    env: 'MILLRACE_MAX_JOB_BYTES_PER_KEY',
    flag: 'max-job-bytes-per-key',
    of: 'gateway',
    help: "Input and output bytes of durable requests that one API key may have kept in Redis; more are refused with 429. Keep all keys' together well under Redis's maxmemory.",
    schema: whole(KIB).default(256 * MIB),
  },
  batchItems: {
    env: 'MILLRACE_BATCH_ITEMS',
    flag: 'batch-items',
    of: 'gateway',
    help: 'Items of one batch that are under way at a time. Raise it for models that run thousands of items a second, or many workers: what is under way should last them for most of a second, for the more items there are to choose from, the less is padded.',
    schema: whole(1).default(1024),
  },
  callbackSecret: {
    env: 'MILLRACE_CALLBACK_SECRET',
    flag: 'callback-secret',
    of: 'gateway',
    help: 'Signs callbacks (HMAC-SHA256, as Standard Webhooks): whsec_ and base64, or any text. The same at every gateway. Without one, no callback is taken.',
    secret: true,
    schema: text.default(''),
  },
  callbackHosts: {
    env: 'MILLRACE_CALLBACK_HOSTS',
    flag: 'callback-hosts',
    of: 'gateway',
    help: 'Hosts that callbacks may go to, with commas between. Empty: any of the open internet.',
    schema: names.default([]),
  },
  callbackAllowHttp: {
    env: 'MILLRACE_CALLBACK_ALLOW_HTTP',
    flag: 'callback-allow-http',
    of: 'gateway',
    help: 'Take callbacks to http:// addresses too: they are signed, but anyone on the way can read them.',
    schema: flag.default(false),
  },
  callbackAllowPrivate: {
    env: 'MILLRACE_CALLBACK_ALLOW_PRIVATE',
    flag: 'callback-allow-private',
    of: 'gateway',
    help: 'Let callbacks go to private and loopback addresses. Only where everyone with an API key may reach what is there.',
    schema: flag.default(false),
  },
  callbackTimeoutMs: {
    env: 'MILLRACE_CALLBACK_TIMEOUT_MS',
    flag: 'callback-timeout-ms',
    of: 'gateway',
    help: 'How long a callback may take to be answered, in ms; then it counts as failed and is tried again.',
    schema: whole(100).default(10_000),
  },
  callbacksPerHost: {
    env: 'MILLRACE_CALLBACKS_PER_HOST',
    flag: 'callbacks-per-host',
    of: 'gateway',
    help: 'Callbacks that one gateway has under way to one host at a time.',
    schema: whole(1, 64).default(4),
  },
  dashboardPassword: {
    env: 'MILLRACE_DASHBOARD_PASSWORD',
    flag: 'dashboard-password',
    of: 'gateway',
    help: 'Password of the dashboard; the user is "admin". Without one, `millrace up` makes one per data folder and prints it; a gateway by itself then has a dashboard only for API keys of the scope admin.',
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
} as const satisfies Record<string, SettingSpec>;
