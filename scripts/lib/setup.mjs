// What `npm start` and `npm test` do before anything else. Plain JavaScript without dependencies: on a
// fresh clone there are none yet.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { takeSetupLock } from './setup-lock.mjs';
import { Stoppable } from './stoppable.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const LEAST_NODE = [20, 19];
const STILL_AT_IT_MS = 15_000;
/** With nothing changed the compiler knows so in a third of a second: what takes longer compiles. */
const COMPILING_MS = 1000;

/**
 * Brings a clone to where its compiled programs can run, or ends the process with a sentence. A signal ends
 * what runs before it ends us; another set-up of the same clone is waited for.
 *
 * @param projects folders to compile with what they refer to; none: all there are.
 * @returns whether everything compiled.
 */
export async function setUp(...projects) {
  checkNode();
  process.chdir(ROOT);
  const stoppable = new Stoppable();
  const lock = await takeSetupLock(join(ROOT, '.cache', 'set-up'));
  stoppable.beforeExit(lock.release);
  try {
    await installIfNeeded(stoppable, lock);
    return await compile(stoppable, projects);
  } finally {
    lock.release();
    stoppable.close();
  }
}

async function compile(stoppable, projects) {
  const timer = setTimeout(() => stoppable.isStopping || console.log('Compiling...'), COMPILING_MS);
  const tsc = join('node_modules', 'typescript', 'bin', 'tsc');
  const code = await stoppable.run(process.execPath, [tsc, '-b', ...projects]);
  clearTimeout(timer);
  return code === 0;
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [leastMajor, leastMinor] = LEAST_NODE;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return;
  end(`Millrace needs Node.js ${LEAST_NODE.join('.')} or newer; this is ${process.versions.node}.`);
}

async function installIfNeeded(stoppable, lock) {
  if (isInstalled()) return;
  console.log('Installing dependencies (once)...');
  const npm = process.env.npm_execpath;
  const [command, ...first] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const startedAt = Date.now();
  const timer = setInterval(() => {
    if (stoppable.isStopping) return;
    console.log(`Still installing (${Math.round((Date.now() - startedAt) / 1000)} s)...`);
  }, STILL_AT_IT_MS);
  // Its spinner would stand in the line of what we say.
  const code = await stoppable.run(command, [...first, 'ci', '--loglevel=error', '--no-progress'], {
    onStart: lock.heldBy,
    // Without it, onnxruntime-node would download CUDA's libraries where install scripts are allowed.
    env: { ...process.env, ONNXRUNTIME_NODE_INSTALL: 'skip' },
  });
  clearInterval(timer);
  if (code === 0) return;
  lock.release();
  end('Installing dependencies failed: see above. Then try `npm ci` by hand.');
}

/**
 * Whether node_modules holds what package-lock.json says, by the list that npm itself leaves there once it
 * has finished. Packages for other platforms are in the lock file and rightly not installed.
 */
function isInstalled() {
  try {
    const wanted = packagesOf('package-lock.json');
    const there = packagesOf(join('node_modules', '.package-lock.json'));
    return Object.entries(wanted).every(
      ([path, { version, optional, link }]) =>
        !path.startsWith('node_modules/') || link || optional || there[path]?.version === version,
    );
  } catch {
    return false;
  }
}

function packagesOf(lockFile) {
  return JSON.parse(readFileSync(join(ROOT, lockFile), 'utf8')).packages;
}

/** Runs a command on our own terminal; resolves with its exit code (a signal counts as 1). */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], ...options });
    child.once('error', (error) => {
      console.error(`${command} could not be started: ${error.message}`);
      resolve(1);
    });
    child.once('exit', (code, signal) => {
      if (signal) console.error(`${command} ended with ${signal}`);
      resolve(code ?? 1);
    });
  });
}

export function end(sentence) {
  console.error(sentence);
  process.exit(1);
}
