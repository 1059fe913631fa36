/**
 * `npm run chaos -- [--minutes 10] [--seed 1] [--rate 60] [--bulk-lines 2000] [--faults NAME,...]`: a private cluster under load while
 * its processes, its Redis, the links between them and its clients fail in an order drawn from the seed. The
 * last line is the verdict as JSON; the exit code is 0 only for a pass.
 *
 * A full disk is made by a limit on the size of Redis's files (see redis-faults.ts), broken links by a proxy of our
 * own: neither a small file system nor a network namespace can be made without privileges.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { FAULTS } from './faults.js';
import { type ChaosPlan, runChaos } from './run.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CALM_MS = 15_000;

function number(name: string, text: string): number {
  const value = Number(text);
  if (!(Number.isFinite(value) && value > 0))
    throw new Error(`--${name} must be a number above 0, not ${text}.`);
  return value;
}

/** @throws Error naming what of the command line is wrong. */
function readPlan(): ChaosPlan {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
      rate: { type: 'string', default: '60' },
      'bulk-lines': { type: 'string', default: '2000' },
      faults: { type: 'string', default: FAULTS.map(({ name }) => name).join(',') },
    },
  });
  const seed = number('seed', values.seed);
  const names = values.faults.split(',');
  const unknown = names.filter((name) => !FAULTS.some((fault) => fault.name === name));
  if (unknown.length > 0) {
    throw new Error(
      `--faults knows no ${unknown.join(', ')}; there are ${FAULTS.map(({ name }) => name).join(', ')}.`,
    );
  }
  const folder = join(ROOT, '.cache', 'chaos', `seed-${seed}`);
  return {
    seed,
    faults: FAULTS.filter(({ name }) => names.includes(name)),
    faultMs: number('minutes', values.minutes) * 60_000,
    calmMs: CALM_MS,
    rate: number('rate', values.rate),
    hurried: 0.05,
    kept: 0.15,
    bulkLines: number('bulk-lines', values['bulk-lines']),
    folder,
    say: console.log,
  };
}

async function run(plan: ChaosPlan): Promise<number> {
  const { seed, folder } = plan;
  rmSync(folder, { recursive: true, force: true });
  const { verdict } = await runChaos(plan);
  for (const problem of verdict.problems) console.log(problem);
  if (verdict.verdict === 'fail') console.log(`History and logs: ${folder}`);
  console.log(JSON.stringify({ seed, ...verdict }));
  return verdict.verdict === 'pass' ? 0 : 1;
}

let plan: ChaosPlan | undefined;
try {
  plan = readPlan();
  process.exitCode = await run(plan);
} catch (error) {
  const { message, stack } = error as Error;
  console.error(plan ? stack : message);
  process.exitCode = 2;
}
// What a fault left open may still hold the process; nothing of it is needed.
process.exit();
