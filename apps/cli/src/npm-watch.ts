import { execFile } from 'node:child_process';
import { kill, ppid } from 'node:process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CHECK_MS = 500;

/**
 * Calls back when the npm that started this process has died, however it died. npm runs a script in a
 * shell, which outlives it and tells nobody, so the shell's parent is watched too.
 */
export async function onNpmGone(callback: () => void): Promise<void> {
  const shell = ppid;
  const npm = await npmBehind(shell);
  const timer = setInterval(() => {
    if (ppid === shell && (npm === undefined || isThere(npm))) return;
    clearInterval(timer);
    callback();
  }, CHECK_MS);
  timer.unref();
}

/** The process that started a shell; undefined if the pid is no shell's, or nobody can tell. */
async function npmBehind(pid: number): Promise<number | undefined> {
  const { stdout } = await run('ps', ['-o', 'ppid=,comm=', '-p', String(pid)]).catch(() => ({ stdout: '' }));
  const [, parent, command = ''] = /^\s*(\d+)\s+(\S+)/.exec(stdout) ?? [];
  const isShell = /(^|\/)-?(sh|dash|bash|zsh|ash)$/.test(command);
  return isShell && Number(parent) > 1 ? Number(parent) : undefined;
}

function isThere(pid: number): boolean {
  try {
    kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's by now would be EPERM: there, but not ours to signal.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
