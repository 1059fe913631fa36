import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis, StartupError } from '@millrace/shared';

/** Loading a large append-only file takes seconds; more than this is no start any more. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const POLL_MS = 5;

/**
 * redis-server can't notice that the process that started it died. So the shell that becomes it first leaves
 * a watcher behind, which reads a pipe from us: a line says that all is over, the bare end of the pipe
 * says that we died. The two seconds let workers that notice the same finish what they hold.
 */
const START_WATCHED =
  '(if read -r _ <&3; then exit; fi; sleep 2; kill -TERM $$) >/dev/null 2>&1 & exec "$0" "$1" 3<&-';

export interface ServerProcess {
  readonly pid: number;
  /** How it ended, for a person: `signal SIGKILL`, `exit code 1`. */
  readonly ended: Promise<string>;
  hasEnded(): boolean;
  /** Ends it in order, its append-only file complete. */
  stop(): Promise<void>;
  kill9(): Promise<void>;
}

export interface ServerFiles {
  binary: string;
  configFile: string;
  logFile: string;
  socket: string;
}

/** Starts one redis-server and waits until it answers. */
export async function startServer(files: ServerFiles, url: string): Promise<ServerProcess> {
  const server = spawnServer(files);
  try {
    await untilAnswering(server, files, url);
  } catch (error) {
    await server.kill9();
    throw error;
  }
  return server;
}

function spawnServer({ binary, configFile, logFile }: ServerFiles): ServerProcess {
  // What is wrong with its configuration it says on its output alone.
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn('/bin/sh', ['-c', START_WATCHED, binary, configFile], {
    stdio: ['ignore', log, log, 'pipe'],
    // A session of its own: Ctrl-C goes to the whole foreground group, and Redis must be the last to end.
    detached: true,
  });
  closeSync(log);
  const watcher = child.stdio[3];
  const { pid } = child;
  if (pid === undefined || !watcher || !('write' in watcher)) {
    throw new StartupError('/bin/sh could not be started.', 'Set REDIS_URL to a Redis of your own.');
  }
  // The watcher may be gone before it has read its line.
  watcher.on('error', () => undefined);
  let over = false;
  const ended = once(child, 'exit').then(([code, signal]) => {
    over = true;
    watcher.end('over\n');
    return signal === null ? `exit code ${code}` : `signal ${signal}`;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.kill(signal);
    await ended;
    clearTimeout(timer);
  };
  return {
    pid,
    ended,
    hasEnded: () => over,
    stop: () => end('SIGTERM'),
    kill9: () => end('SIGKILL'),
  };
}

async function untilAnswering(server: ServerProcess, files: ServerFiles, url: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await accepts(files.socket))) {
    if (server.hasEnded() || performance.now() > deadline) throw await notStarted(server, files);
    await sleep(POLL_MS);
  }
  const redis = connectRedis(url, 'subscriber', 'start');
  try {
    // "ready" comes once the append-only file is loaded.
    const ready = once(redis, 'ready').then(() => true);
    const inTime = await Promise.race([
      ready,
      server.ended.then(() => false),
      sleep(START_TIMEOUT_MS, false, { ref: false }),
    ]);
    if (!inTime) throw await notStarted(server, files);
  } finally {
    redis.disconnect();
  }
}

/** Whether somebody listens on a unix socket. */
export function accepts(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket);
    const settle = (answer: boolean) => {
      probe.destroy();
      resolve(answer);
    };
    probe.once('connect', () => settle(true));
    probe.once('error', () => settle(false));
  });
}

async function notStarted(server: ServerProcess, { logFile }: ServerFiles): Promise<StartupError> {
  const how = server.hasEnded() ? `ended with ${await server.ended}` : 'does not answer';
  const log = await readFile(logFile, 'utf8').catch(() => '');
  // A fault in the configuration takes two lines: where, and what.
  const last = log.trim().split('\n').slice(-2).join(' ');
  return new StartupError(
    `The private Redis ${how}${last ? `; its log ends with: ${last}` : ''}.`,
    `Look at ${logFile}, or set REDIS_URL to a Redis of your own.`,
  );
}
