/** `npm run bench -- SCENARIO [--seconds N | --minutes N] [--rounds N] [--lines N] [--json]`. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { onNpmGone } from '#cli/npm-watch.js';
import { BenchRun } from './run/bench-run.js';
import { lockMachine } from './run/lock.js';
import { passes, resultLine, resultTable } from './run/print.js';
import type { BenchOptions, Scenario } from './run/scenario.js';
import { SCENARIOS } from './scenarios/index.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DEFAULT_SECONDS = 10;
const LEAST_ROUNDS = 3;
const LEAST_LISTENERS = 10;
const INTERRUPTED = 130;

function usage(): string {
  const width = Math.max(...SCENARIOS.map(({ name }) => name.length));
  return [
    'npm run bench -- SCENARIO [--seconds N | --minutes N] [--rounds N] [--lines N] [--json] [--with-peers] [--peers DIR] [--listeners N]',
    '  --with-peers  also the no-op figures and sustained rates of the peers, in overhead and slo',
    '',
    ...SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
  ].join('\n');
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string' },
      minutes: { type: 'string' },
      rounds: { type: 'string' },
      lines: { type: 'string' },
      json: { type: 'boolean', default: false },
      listeners: { type: 'string' },
      'with-peers': { type: 'boolean', default: false },
      peers: { type: 'string', default: process.env.MILLRACE_PEERS || join(ROOT, '..', 'shared', 'peers') },
    },
  });
  const [name] = positionals;
  if (name === undefined) {
    console.log(usage());
    return 0;
  }
  const scenario = SCENARIOS.find((each) => each.name === name);
  if (!scenario || positionals.length > 1)
    throw new Error(`There is no scenario ${positionals.join(' ')}.\n${usage()}`);
  const seconds = secondsOf(scenario, values);
  const leastRounds = scenario.rounds ?? LEAST_ROUNDS;
  const rounds = wholeFrom(leastRounds, 'rounds', values.rounds ?? String(leastRounds));
  const { listeners, lines } = values;
  const options: BenchOptions = {
    seconds,
    rounds,
    ...(listeners === undefined ? {} : { listeners: wholeFrom(LEAST_LISTENERS, 'listeners', listeners) }),
    peersDir: values.peers,
    withPeers: values['with-peers'],
    cacheDir: join(ROOT, 'bench', '.cache'),
    outDir: join(ROOT, 'bench', 'out'),
    ...(lines === undefined ? {} : { lines: wholeFrom(1, 'lines', lines) }),
  };
  await lockMachine();
  return await measure(scenario, options, values.json);
}

function wholeFrom(least: number, option: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least) return value;
  throw new Error(`--${option} must be a whole number from ${least} up, not ${text}.`);
}

/** As asked for; else what the scenario needs. */
function secondsOf(scenario: Scenario, values: { seconds?: string; minutes?: string }): number {
  for (const [unit, of] of [
    ['minutes', 60],
    ['seconds', 1],
  ] as const) {
    const text = values[unit];
    if (text === undefined) continue;
    if (!(Number(text) > 0)) throw new Error(`--${unit} must be a number above 0, not ${text}.`);
    return Number(text) * of;
  }
  return scenario.seconds ?? DEFAULT_SECONDS;
}

async function measure(scenario: Scenario, options: BenchOptions, json: boolean): Promise<number> {
  // With --json the line of JSON is all that stands on the output.
  const say = (line: string): void => void (json ? process.stderr : process.stdout).write(`${line}\n`);
  const bench = await BenchRun.start(options, say);
  endWhenTold(() => bench.end());
  try {
    const outcome = await scenario.run(bench);
    if (!json) say(resultTable(outcome));
    console.log(resultLine(scenario.name, options, outcome));
    return passes(outcome) ? 0 : 1;
  } finally {
    await bench.end();
  }
}

/** Interrupted, or npm gone: everything that was started ends, then this process. */
function endWhenTold(end: () => Promise<void>): void {
  let told = false;
  const stop = (): void => {
    if (told) return;
    told = true;
    console.error('Interrupted: ending what was started...');
    void end().finally(() => process.exit(INTERRUPTED));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  if (process.env.npm_lifecycle_event !== undefined) void onNpmGone(stop);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 2;
}
// What a scenario opened may still hold the process; nothing of it is needed.
process.exit();
