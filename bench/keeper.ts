/**
 * Runs a foreign command for the bench and ends it, with everything that it started, when the bench ends,
 * however that is: `keeper.js COMMAND ARGS...`. Each line that the command prints is passed on.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { CpuTimes } from './run/proc.js';
import type { FromKeeper } from './serve/kept-command.js';

/** What is told to end has this long to do so, in ms. */
const GRACE_MS = 8000;

const [command = '', ...args] = process.argv.slice(2);
// In a process group of its own: what a terminal sends to the bench's group is not for it.
const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });

/** Nobody may be there any more to read it. */
function tell(message: FromKeeper): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

for (const stream of [child.stdout, child.stderr]) {
  createInterface({ input: stream }).on('line', (line) => tell({ type: 'line', line }));
}
child.once('error', (error) => {
  tell({ type: 'ended', how: error.message });
  process.exit(1);
});
child.once('exit', (code, signal) => {
  tell({ type: 'ended', how: String(signal ?? code) });
  process.exit(0);
});

let ending = false;
function end(): void {
  if (ending) return;
  ending = true;
  child.kill('SIGTERM');
  setTimeout(() => {
    for (const pid of CpuTimes.now().family(process.pid)) if (pid !== process.pid) kill(pid);
    process.exit(1);
  }, GRACE_MS);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

process.on('disconnect', end);
process.on('SIGTERM', end);
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
