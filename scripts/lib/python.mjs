// A virtualenv with exactly the packages of a requirements file, made anew when that file changes.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { end } from './setup.mjs';

const LEAST_PYTHON = [3, 11];
const STILL_AT_IT_MS = 15_000;
const HOW_TO_GET =
  'On Debian and Ubuntu: apt-get install python3 python3-venv. Or name another in the environment variable PYTHON.';

/**
 * @param folder where the virtualenv is kept.
 * @param requirements file of `NAME==VERSION` lines, complete: nothing else is installed.
 * @returns path of its Python.
 */
export async function makeVirtualenv(folder, requirements) {
  const python = join(folder, 'bin', 'python');
  const stamp = join(folder, 'installed');
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  if (existsSync(python) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return python;
  const base = findPython();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  const made = await runQuietly(base, ['-m', 'venv', folder]);
  if (made.code !== 0) end(`A Python virtualenv could not be made:\n${made.output}\n${HOW_TO_GET}`);
  await install(python, requirements);
  writeFileSync(stamp, wanted);
  return python;
}

/** The Python to use, or the end with a sentence. */
function findPython() {
  const found = [];
  for (const name of process.env.PYTHON ? [process.env.PYTHON] : ['python3', 'python']) {
    try {
      const script = 'import sys, venv, ensurepip; print(*sys.version_info[:2])';
      const said = execFileSync(name, ['-c', script], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const [major, minor] = said.trim().split(' ').map(Number);
      if (major === LEAST_PYTHON[0] && minor >= LEAST_PYTHON[1]) return name;
      found.push(`${name} is ${major}.${minor}`);
    } catch (error) {
      found.push(error.code === 'ENOENT' ? `there is no ${name}` : `${name} has no venv`);
    }
  }
  return end(
    `This needs Python ${LEAST_PYTHON.join('.')} or newer with venv: ${found.join(', ')}. ${HOW_TO_GET}`,
  );
}

async function install(python, requirements) {
  const total = readFileSync(requirements, 'utf8').match(/^[A-Za-z].*==/gm).length;
  console.log(`Installing ${total} Python packages (once)...`);
  const startedAt = Date.now();
  let collected = 0;
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - startedAt) / 1000);
    console.log(`Still installing (${seconds} s, ${collected} of ${total} fetched)...`);
  }, STILL_AT_IT_MS);
  const args = [
    '-m',
    'pip',
    'install',
    '--no-deps',
    '--no-compile',
    '--no-input',
    '--disable-pip-version-check',
    '--progress-bar=off',
  ];
  const { code, output } = await runQuietly(python, [...args, '-r', requirements], (line) => {
    if (line.startsWith('Collecting ')) collected += 1;
  });
  clearInterval(timer);
  if (code !== 0) end(`${output}\nThe Python packages could not be installed: see above.`);
}

/** Runs a command whose output is of interest only if it fails. */
function runQuietly(command, args, onLine = () => undefined) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output += `${line}\n`;
        onLine(line);
      });
    }
    child.once('error', (error) => resolve({ code: 1, output: error.message }));
    child.once('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
