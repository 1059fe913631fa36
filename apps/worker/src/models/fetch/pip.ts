import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SourceFailure } from './types.js';

const CANDIDATES = [['pip'], ['pip3'], ['python3', '-m', 'pip'], ['python', '-m', 'pip']] as const;
const POLL_MS = 250;
const KILL_MS = 2_000;
/** Seconds pip waits on a socket, unless the environment says otherwise. */
const TIMEOUT_S = '8';
const MAX_STDERR = 64 * 1024;

export interface PipDownload {
  /** `name==version`. */
  requirement: string;
  /** Where the wheel is put; pip's own temporary files go to a folder in it too. */
  dir: string;
  env: NodeJS.ProcessEnv;
  /** Longest time without a new byte, in ms. */
  idleMs: number;
  signal: AbortSignal;
  /** Bytes that came so far. */
  onBytes: (bytes: number) => void;
}

/**
 * Downloads one wheel by the first pip that is there, by pip's own settings (index, proxy, certificates).
 * Only a built wheel is taken, so nothing of the package is run.
 *
 * @returns the wheel's path.
 * @throws SourceFailure when there is no pip, or it fails or stalls; the signal's reason.
 */
export async function pipDownload(download: PipDownload): Promise<string> {
  for (const [command, ...prefix] of CANDIDATES) {
    const outcome = await run(command, prefix, download);
    if (outcome === 'absent') continue;
    if (outcome !== 'done') throw new SourceFailure(outcome.reason);
    const wheel = (await readdir(download.dir)).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new SourceFailure('pip downloaded no wheel');
    return join(download.dir, wheel);
  }
  throw new SourceFailure('pip is not installed');
}

async function run(
  command: string,
  prefix: readonly string[],
  { requirement, dir, env, idleMs, signal, onBytes }: PipDownload,
): Promise<'done' | 'absent' | { reason: string }> {
  const flags = ['--no-deps', '--only-binary=:all:', '--ignore-requires-python', '--no-cache-dir'];
  const quiet = ['--no-input', '--disable-pip-version-check', '--progress-bar=off', '--retries=1'];
  const child = spawn(
    command,
    [...prefix, 'download', ...flags, ...quiet, `--dest=${dir}`, '--', requirement],
    {
      // Its unfinished files are seen growing there. A rule against installing outside a virtual
      // environment means installing; this only downloads.
      env: {
        PIP_DEFAULT_TIMEOUT: TIMEOUT_S,
        ...env,
        TMPDIR: dir,
        TEMP: dir,
        TMP: dir,
        PIP_REQUIRE_VIRTUALENV: '0',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-MAX_STDERR);
  });
  const ended = once(child, 'exit').then(
    ([code]) => code as number | null,
    (error: unknown) => error as NodeJS.ErrnoException,
  );
  // Whoever gave pip a long timeout knows an index that takes it.
  const patienceMs = Math.max(idleMs, Number(env.PIP_DEFAULT_TIMEOUT ?? 0) * 1000 || 0);
  const stalled = await watch(child, ended, dir, patienceMs, signal, onBytes);
  const end = await ended;
  child.stderr.destroy();
  signal.throwIfAborted();
  if (stalled) return { reason: `pip brought nothing for ${patienceMs / 1000} s` };
  if (end === 0) return 'done';
  if (end instanceof Error || end === 127 || /No module named '?pip/.test(stderr)) return 'absent';
  return { reason: whyOf(stderr) };
}

/** Reports bytes until the child ends; true if it had to be ended because nothing came. */
async function watch(
  child: ChildProcess,
  ended: Promise<unknown>,
  dir: string,
  idleMs: number,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<boolean> {
  let running = true;
  void ended.then(() => {
    running = false;
  });
  let most = 0;
  let lastNews = performance.now();
  while (running) {
    await Promise.race([ended, sleep(POLL_MS)]);
    const bytes = await largestFile(dir);
    if (bytes > most) {
      most = bytes;
      lastNews = performance.now();
      onBytes(bytes);
    }
    const stalled = performance.now() - lastNews > idleMs;
    if (running && (stalled || signal.aborted)) {
      child.kill('SIGTERM');
      const hard = setTimeout(() => child.kill('SIGKILL'), KILL_MS);
      await ended;
      clearTimeout(hard);
      return stalled;
    }
  }
  return false;
}

/** The wheel is copied once at the end, so the largest file, not the sum, says how far it is. */
async function largestFile(dir: string): Promise<number> {
  const names = await readdir(dir, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    names.map(async (name) => {
      const found = await stat(join(dir, name)).catch(() => undefined);
      return found?.isFile() ? found.size : 0;
    }),
  );
  return Math.max(0, ...sizes);
}

/** pip's own last word, or that nobody answered it. */
function whyOf(stderr: string): string {
  if (/Retrying|NewConnectionError|ConnectTimeout|ReadTimeout|Max retries/.test(stderr)) {
    return 'pip could not reach its package index';
  }
  const last = stderr.split('\n').findLast((line) => line.startsWith('ERROR:'));
  return last === undefined ? 'pip failed' : `pip: ${last.slice('ERROR:'.length).trim()}`;
}
