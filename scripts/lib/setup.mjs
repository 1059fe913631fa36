// What `npm start` and `npm test` do before anything else. Plain JavaScript without dependencies: on a
// fresh clone there are none yet.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const LEAST_NODE = [20, 19];
const STILL_AT_IT_MS = 15_000;

/**
 * Brings a clone to where its compiled programs can run, or ends the process with a sentence. Resolves with
 * whether everything compiled: what is emitted in spite of a fault may do for a part of the tests.
 *
 * @param projects folders to compile with what they refer to; none: all there are.
 */
export async function setUp(...projects) {
  checkNode();
  process.chdir(ROOT);
  await installIfNeeded();
  // With nothing changed the compiler knows so in a third of a second.
  return (
    (await run(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '-b', ...projects])) === 0
  );
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [leastMajor, leastMinor] = LEAST_NODE;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return;
  end(`Millrace needs Node.js ${LEAST_NODE.join('.')} or newer; this is ${process.versions.node}.`);
}

async function installIfNeeded() {
  if (isInstalled()) return;
  console.log('Installing dependencies (once)...');
  const npm = process.env.npm_execpath;
  const [command, ...first] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const startedAt = Date.now();
  const timer = setInterval(() => {
    console.log(`Still installing (${Math.round((Date.now() - startedAt) / 1000)} s)...`);
  }, STILL_AT_IT_MS);
  const code = await run(command, [...first, 'ci', '--loglevel=error'], {
    // Without it, onnxruntime-node would download CUDA's libraries where install scripts are allowed.
    env: { ...process.env, ONNXRUNTIME_NODE_INSTALL: 'skip' },
  });
  clearInterval(timer);
  if (code !== 0) end('Installing dependencies failed: see above. Then try `npm ci` by hand.');
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
