// The only file that touches the process: its arguments, environment, signals and exit.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { StartupError } from '@millrace/shared';
import { CommanderError } from 'commander';
import type { Host, Parent } from './host.js';
import type { FromChild } from './messages.js';
import { refuseKeptFlags } from './npm-flags.js';
import { onNpmGone } from './npm-watch.js';
import { buildProgram } from './program.js';

/** npm passes on a signal that the terminal has already sent to everybody: two at once are one. */
const SAME_SIGNAL_MS = 1000;
/** A process whose parent vanished has this long to finish what it holds; nobody is left to force it. */
const ORPHAN_GRACE_MS = 3000;
/** What was forced and is still here after this is ended the hard way. */
const FORCED_MS = 2000;

const asked = new AbortController();
const forced = new AbortController();
let askedAt = 0;

function stopOrForce(): void {
  if (!asked.signal.aborted) {
    askedAt = performance.now();
    asked.abort();
  } else if (performance.now() - askedAt > SAME_SIGNAL_MS && !forced.signal.aborted) {
    forced.abort();
    setTimeout(killSelf, FORCED_MS).unref();
  }
}

/** Not exit(): a session thread in the middle of a run would turn that into an abort with a core dump. */
function killSelf(): void {
  process.kill(process.pid, 'SIGKILL');
}

/** Under `millrace up` the parent decides: what a terminal sends to the whole group is not for us. */
function obeyParent(): Parent {
  process.on('SIGINT', () => undefined);
  process.on('SIGHUP', () => undefined);
  process.on('SIGTERM', stopOrForce);
  process.on('disconnect', () => {
    asked.abort();
    setTimeout(killSelf, ORPHAN_GRACE_MS).unref();
  });
  return {
    tell: (message: FromChild) => {
      if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
    },
  };
}

function obeyPerson(): undefined {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopOrForce);
  if (process.env.npm_lifecycle_event !== undefined) void onNpmGone(() => asked.abort());
  return undefined;
}

// onnxruntime 1.30 reports its use to its makers unless told not to, and leaves a file a process in /tmp. It reads
// the environment of the process when it is loaded. Empty counts as unset.
process.env.ORT_DISABLE_TELEMETRY ||= '1';

// Whoever read our output may be gone: a closed terminal must not keep us from ending in order.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

const host: Host = {
  env: process.env,
  mainFile: fileURLToPath(import.meta.url),
  version: JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version,
  pid: process.pid,
  isTerminal: process.stdout.isTTY === true,
  say: (line) => void process.stdout.write(`${line}\n`),
  stdin: () => process.stdin,
  stop: { asked: asked.signal, forced: forced.signal },
  killSelf: () => {
    killSelf();
    return new Promise(() => undefined);
  },
  parent: process.send ? obeyParent() : obeyPerson(),
};

/** Exit code of a command that threw; says why, to the parent where there is one. */
async function refuse(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode;
  if (error instanceof StartupError) {
    const { message, nextStep } = error;
    if (process.send && process.connected) {
      const refused: FromChild = { type: 'refused', sentence: message, nextStep };
      await new Promise((resolve) => process.send?.(refused, undefined, undefined, resolve));
    } else {
      process.stderr.write(`${message} ${nextStep}\n`);
    }
    return 1;
  }
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return 1;
}

let exitCode = 0;
const program = buildProgram(host, (code) => {
  exitCode = code;
});
for (const command of [program, ...program.commands, ...program.commands.flatMap((c) => c.commands)]) {
  command.exitOverride();
}
try {
  if (!host.parent) refuseKeptFlags(host.env, process.argv.slice(2));
  await program.parseAsync(process.argv);
} catch (error) {
  exitCode = await refuse(error);
}
// The commands have closed what they opened: nothing that is still open may hold the process.
process.exit(exitCode);
