import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;

export interface RedisConfig {
  socket: string;
  password: string;
  dir: string;
  logFile: string;
  /** Bytes, or with a unit as Redis reads it: `512mb`. */
  maxmemory: string;
  appendfsync: 'everysec' | 'always';
  enableDebug: boolean;
}

/** A quarter of the machine, within 256 MiB and 4 GiB: the queue shares it with models and page cache. */
export function defaultMaxmemory(total = totalmem()): string {
  const mib = Math.round(total / 4 / MIB);
  return `${Math.min(4096, Math.max(256, mib))}mb`;
}

/** Writes the configuration, readable by its owner alone, since it holds the password. */
export async function writeConfig(path: string, config: RedisConfig): Promise<void> {
  await writePrivate(path, renderConfig(config));
}

export function renderConfig(config: RedisConfig): string {
  const lines = [
    // No port at all: the socket's folder keeps other users out, and nothing can collide.
    'port 0',
    `unixsocket ${quoted(config.socket)}`,
    'unixsocketperm 600',
    `requirepass ${quoted(config.password)}`,
    'protected-mode yes',
    'daemonize no',
    `dir ${quoted(config.dir)}`,
    `logfile ${quoted(config.logFile)}`,
    // Jobs survive a restart by the append-only file alone; snapshots would only cost memory and disk.
    'appendonly yes',
    `appendfsync ${config.appendfsync}`,
    'save ""',
    `maxmemory ${config.maxmemory}`,
    // An evicted key would be a lost job. Gateways refuse new work long before this limit.
    'maxmemory-policy noeviction',
    // The default (32mb 8mb 60) would cut off a gateway that reads its replies slowly for a moment.
    'client-output-buffer-limit pubsub 256mb 64mb 60',
    // Redis before 7 doesn't know this line, so it is there only when asked for.
    ...(config.enableDebug ? ['enable-debug-command local'] : []),
  ];
  return `# Written by Millrace at every start; changes are lost.\n${lines.join('\n')}\n`;
}

/** The password of a data folder: random, made once, in a file that only its owner reads. */
export async function keptPassword(dir: string, name: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, name);
  const kept = await readFile(path, 'utf8').catch(() => '');
  if (kept.trim() !== '') {
    await chmod(path, 0o600);
    return kept.trim();
  }
  const password = randomBytes(18).toString('base64url');
  await writePrivate(path, `${password}\n`);
  return password;
}

/** Written beside and renamed, so that nobody ever reads half of it or before its mode is set. */
async function writePrivate(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  await rename(draft, path);
}

function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
