import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = join(ROOT, 'apps', 'cli', 'dist', 'main.js');
const POLL_MS = 25;

/** A `millrace` command as a real process, its output kept. */
export interface MillraceProcess {
  readonly pid: number;
  /** stdout and stderr together, so far. */
  output(): string;
  /** Waits until the output matches; fails, showing the output, if the process ends before. */
  says(pattern: RegExp): Promise<RegExpMatchArray>;
  signal(name: NodeJS.Signals): void;
  /** As a terminal's Ctrl-C: to the whole process group. */
  signalGroup(name: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

export interface RunOptions {
  args: string[];
  /** By `npm start`, as a person would, not by the program itself. */
  byNpm?: boolean;
  /** Another script than the program itself. */
  program?: string;
  cwd?: string;
  env?: Record<string, string>;
  /** What is piped into it; absent: nothing. */
  input?: string;
}

/** Starts processes and makes sure that none of them outlives a test. */
export class MillraceRunner {
  readonly #folders: string[] = [];
  readonly #processes: MillraceProcess[] = [];

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-start-'));
    this.#folders.push(folder);
    return folder;
  }

  run({
    args,
    byNpm = false,
    program = MAIN,
    cwd = ROOT,
    env = {},
    input = '',
  }: RunOptions): MillraceProcess {
    const [command, ...first] = byNpm ? ['npm', 'start', '--'] : [process.execPath, program];
    const child = spawn(command ?? '', [...first, ...args], {
      cwd,
      env: { ...withoutSettings(process.env), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group of its own, so that a whole group can be signalled without the tests.
      detached: true,
    });
    // Whoever reads nothing may have ended before.
    child.stdin.on('error', () => undefined).end(input);
    const pid = child.pid ?? 0;
    let output = '';
    let over = false;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    // "close": everything it printed has arrived.
    const ended = once(child, 'close').then(([code, signal]) => {
      over = true;
      return (signal ?? code) as number | NodeJS.Signals;
    });
    const millrace: MillraceProcess = {
      pid,
      output: () => output,
      signal: (name) => child.kill(name),
      signalGroup: (name) => process.kill(-pid, name),
      ended,
      async says(pattern) {
        for (;;) {
          const found = output.match(pattern);
          if (found) return found;
          if (over) throw new Error(`it ended without saying ${pattern}; it said:\n${output}`);
          await sleep(POLL_MS);
        }
      },
    };
    this.#processes.push(millrace);
    return millrace;
  }

  /** Ends what a failed test left and removes the folders. */
  async clean(): Promise<void> {
    for (const { pid } of this.#processes.splice(0)) {
      for (const each of [pid, ...descendants(pid)]) {
        try {
          process.kill(each, 'SIGKILL');
        } catch {
          // It has ended, as it should.
        }
      }
    }
    for (const folder of this.#folders.splice(0)) {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  }
}

/** The processes that a process started, and theirs. */
export function descendants(pid: number): number[] {
  const children = processTable()
    .filter(({ parent }) => parent === pid)
    .map((row) => row.pid);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

/** Waits until all have ended. One that its new parent has not yet collected counts as ended. */
export async function untilGone(pids: readonly number[]): Promise<void> {
  for (;;) {
    const living = new Set(
      processTable()
        .filter(({ state }) => !state.startsWith('Z'))
        .map((row) => row.pid),
    );
    if (!pids.some((pid) => living.has(pid))) return;
    await sleep(POLL_MS);
  }
}

/** The command line of a process, to tell a worker from a gateway. */
export function commandOf(pid: number): string {
  return processTable().find((row) => row.pid === pid)?.command ?? '';
}

function processTable(): { pid: number; parent: number; state: string; command: string }[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,state=,args='], { encoding: 'utf8' }).trim();
  return rows.split('\n').map((row) => {
    const [pid, parent, state = '', ...command] = row.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), state, command: command.join(' ') };
  });
}

function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(MILLRACE_|REDIS_URL$|PORT$|npm_)/.test(name)),
  );
}
