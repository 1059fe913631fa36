import { Cluster, type ClusterProcess } from '#test/support/cluster.js';
import { MINILM } from '#test/support/minilm.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { Tally } from '../run/tally.js';
import { predictUrl } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { CLIENTS } from '../serve/sustained.js';

const EACH = 2;
/** A gateway is ready once it has heard of the workers. */
const READY_MS = 30_000;

/** What was replaced, how it ended, and how long the new one took to serve. */
interface Replacement {
  kind: 'gateway' | 'worker';
  ended: number | NodeJS.Signals;
  seconds: number;
}

/** Ends a process in order and starts another in its place; a gateway on the same port. */
async function replace(
  cluster: Cluster,
  kind: Replacement['kind'],
  old: ClusterProcess,
): Promise<[ClusterProcess, Replacement]> {
  const began = performance.now();
  old.kill('SIGTERM');
  const ended = await old.ended;
  // A worker says that it is up when it serves; a gateway when it listens.
  const fresh =
    kind === 'gateway'
      ? await cluster.addGateway({ MILLRACE_PORT: new URL(old.url).port })
      : await cluster.addWorker();
  if (kind === 'gateway') await untilReady(fresh.url);
  return [fresh, { kind, ended, seconds: (performance.now() - began) / 1000 }];
}

/** @throws Error when it does not get ready. */
async function untilReady(url: string): Promise<void> {
  const deadline = performance.now() + READY_MS;
  while (!(await fetch(`${url}/v2/health/ready`).catch(() => undefined))?.ok) {
    if (performance.now() > deadline)
      throw new Error(`the gateway at ${url} is not ready after ${READY_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Every worker and gateway, one after the other, again and again while there is time for one more round. */
async function roll(
  bench: Bench,
  cluster: Cluster,
  untilMs: number,
  onRound: () => void,
): Promise<Replacement[]> {
  const gateways = [...cluster.gateways];
  const workers = [...cluster.workers];
  const done: Replacement[] = [];
  let longestMs = 0;
  do {
    const began = performance.now();
    for (let i = 0; i < EACH; i++) {
      for (const [kind, processes] of [
        ['worker', workers],
        ['gateway', gateways],
      ] as const) {
        const old = processes[i];
        if (!old) throw new Error(`there is no ${kind} ${i}`);
        const [fresh, replacement] = await replace(cluster, kind, old);
        processes[i] = fresh;
        done.push(replacement);
        bench.say(
          `  a ${kind} ended with ${replacement.ended}, another serves after ${replacement.seconds.toFixed(1)} s`,
        );
      }
    }
    onRound();
    longestMs = Math.max(longestMs, performance.now() - began);
  } while (performance.now() + longestMs < untilMs);
  return done;
}

export const rolling: Scenario = {
  name: 'rolling',
  summary: `requests answered while each of ${EACH} gateways and ${EACH} workers is ended and replaced, one after the other`,
  seconds: 60,
  async run(bench) {
    const sentences = await SentenceLoad.prepare(bench);
    const cluster = await Cluster.start({
      models: [MINILM],
      gateways: EACH,
      workers: EACH,
      env: { MILLRACE_DATA_DIR: bench.dataDir },
    });
    bench.own(() => cluster.stop());
    const [url = '', ...otherUrls] = cluster.gateways.map((gateway) => predictUrl(gateway, MINILM));
    const target = { url, otherUrls, ...sentences.requests() };
    let rolled: Promise<Replacement[]> | undefined;
    let rounds = 0;
    const { seconds } = bench.options;
    const load = await bench.load({ ...target, loop: { kind: 'closed', connections: CLIENTS } }, {}, () => {
      rolled = roll(bench, cluster, performance.now() + seconds * 1000, () => rounds++);
      // It is looked at when the load is over.
      rolled.catch(() => undefined);
    });
    const tally = new Tally();
    tally.add('rolling', load);
    if (rounds === 0)
      tally.fault(`the load was over before each was replaced: more than ${seconds} s are needed`);
    const replaced = (await rolled) ?? [];
    for (const { kind, ended } of replaced) {
      if (ended !== 0) tally.fault(`a ${kind} that was told to end did so with ${ended}`);
    }
    for (const { kind, seconds: took } of replaced) tally.figure('rolling', `${kind}Seconds`, took);
    const failed = Object.values(load.failures).reduce((sum, count) => sum + count, 0);
    return tally.outcome(
      [{ name: 'requests answered, of all', ratio: load.answered / (load.answered + failed), bar: 1 }],
      { answered: load.answered, failed, replaced: replaced.length },
    );
  },
};
