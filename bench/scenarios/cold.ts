import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MINILM } from '#test/support/minilm.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { median } from '../run/statistics.js';
import { Tally } from '../run/tally.js';
import { freePort } from '../serve/free-port.js';
import { KeptCommand } from '../serve/kept-command.js';
import { prepareMinilm } from '../serve/minilm.js';

const MOST_MS = 5000;
const POLL_MS = 20;
const GIVE_UP_MS = 120_000;
const START = fileURLToPath(new URL('../../../scripts/start.mjs', import.meta.url));

export const cold: Scenario = {
  name: 'cold',
  summary: `a start on a built clone, with an empty data folder, to its first answer (${MOST_MS / 1000} s / time)`,
  async run(bench) {
    // The models are on this machine, as on a clone that was started before; the data folder is new.
    await prepareMinilm();
    const tally = new Tally();
    for (let round = 0; round < bench.options.rounds; round++) {
      const { result: ms, othersShare } = await bench.watch(() => firstAnswerMs(bench));
      tally.watched(othersShare);
      tally.figure('start', 'ms', ms);
      bench.say(`  first answer after ${(ms / 1000).toFixed(2)} s`);
    }
    const ms = median(tally.values('start', 'ms'));
    return tally.outcome([{ name: `${MOST_MS} ms / time`, ratio: MOST_MS / ms, bar: 1 }]);
  },
};

async function firstAnswerMs(bench: Bench): Promise<number> {
  const port = await freePort();
  const dataDir = await mkdtemp(join(bench.dataDir, 'start-'));
  const began = performance.now();
  // What `npm start` runs; npm's own start is not Millrace's.
  const args = [START, '--port', String(port), '--data-dir', dataDir];
  const start = new KeptCommand(bench, process.execPath, args, withoutSettings());
  try {
    while (!(await answers(port))) {
      if (start.ended) throw new Error(`The start failed: ${start.complaint()}`);
      if (performance.now() - began > GIVE_UP_MS) throw new Error('The start gave no answer in two minutes.');
      await sleep(POLL_MS);
    }
    return performance.now() - began;
  } finally {
    await start.stop();
  }
}

async function answers(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/v1/models/${MINILM}/predict`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ inputs: 'That is a happy person' }),
    });
    const { outputs } = (await response.json()) as { outputs?: number[][] };
    return response.ok && outputs?.[0]?.length === 384;
  } catch {
    return false;
  }
}

/** A person's own settings would be measured otherwise. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(MILLRACE_(?!CACHE)|REDIS_URL$|PORT$|npm_)/.test(name)),
  );
}
