import { type Command, Redis, type RedisOptions } from 'ioredis';
import { StartupError } from '../errors/millrace-error.js';

/** Redis came back 14 ms after its restart at 100 ms; the client's default backs off to 2 s and more. */
const retryStrategy = (): number => 100;

/** A peer that does not even answer the connect, in ms. */
const CONNECT_MS = 3000;

/**
 * A Redis that reads its files after a restart is asked again after so long, in ms. The client's default is what Redis
 * expects it to take, which is far off at the start: ten seconds for what took half a one.
 */
const LOADING_MS = 200;

/** A connection to a replica is made anew no more often than this, in ms. */
const READ_ONLY_MS = 2000;

/**
 * A master that became a replica refuses writes for good; a new connection may lead to the new master. Its refused
 * command is not sent again: it fails, and its caller says so.
 */
function reconnectOnReadOnly(): (error: Error) => boolean {
  let triedAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (!error.message.startsWith('READONLY')) return false;
    if (performance.now() - triedAt < READ_ONLY_MS) return false;
    triedAt = performance.now();
    return true;
  };
}

/**
 * Connections differ in what they do while Redis is away:
 * - `producer` fails at once, so that a gateway can refuse instead of hanging;
 * - `worker` and `subscriber` wait for it to come back, for as long as it takes.
 */
export type ConnectionRole = 'producer' | 'worker' | 'subscriber';

const ROLE_OPTIONS: Record<ConnectionRole, RedisOptions> = {
  producer: { enableOfflineQueue: false, maxRetriesPerRequest: 1 },
  worker: { maxRetriesPerRequest: null },
  subscriber: { maxRetriesPerRequest: null, autoResubscribe: true },
};

/**
 * Opens a connection for a role; it reconnects for ever.
 * `url`: `redis://`, `rediss://`, or `unix:///path/to/socket?password=...`.
 */
export function connectRedis(url: string, role: ConnectionRole, name: string): Redis {
  const options: RedisOptions = {
    ...ROLE_OPTIONS[role],
    retryStrategy,
    reconnectOnError: reconnectOnReadOnly(),
    connectTimeout: CONNECT_MS,
    maxLoadingRetryTime: LOADING_MS,
    connectionName: `millrace-${name}`,
  };
  const redis = url.startsWith('unix:')
    ? new Redis({ ...options, ...socketOptions(url) })
    : new Redis(url, options);
  // Without a listener ioredis prints to the console; callers see the failing commands.
  redis.on('error', () => undefined);
  corkTurns(redis);
  return redis;
}

/**
 * Lets the commands of one turn of the event loop leave in one write. ioredis's automatic pipelining does so
 * too, but gives each pipeline a method for every known script, which takes longer than the commands themselves.
 */
function corkTurns(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  let corked = false;
  redis.sendCommand = (command: Command, to?: Parameters<typeof send>[1]): unknown => {
    const { stream } = redis;
    if (!corked && stream?.writable) {
      corked = true;
      stream.cork();
      setImmediate(() => {
        corked = false;
        stream.uncork();
      });
    }
    return send(command, to);
  };
}

/**
 * Waits until a connection is usable.
 * @throws StartupError naming the address, without its password, after `timeoutMs`.
 */
export async function untilReady(redis: Redis, timeoutMs = 3000): Promise<void> {
  if (redis.status === 'ready') return;
  let lastError: Error | undefined;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      const { host, port, path } = redis.options;
      const address = path ?? `${host}:${port}`;
      reject(
        new StartupError(
          `Redis at ${address} does not answer${lastError ? ` (${lastError.message})` : ''}.`,
          'Check REDIS_URL, or leave it out to have a private Redis started.',
        ),
      );
    }, timeoutMs);
    redis.on('error', (error) => {
      lastError = error;
    });
    redis.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function socketOptions(url: string): RedisOptions {
  const { pathname, searchParams } = new URL(url);
  const password = searchParams.get('password');
  return { path: decodeURIComponent(pathname), ...(password ? { password } : {}) };
}
