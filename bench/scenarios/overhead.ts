import { Child } from '../run/child.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { IDENTITY, IDENTITY_REQUESTS } from '../serve/identity.js';
import { predictUrl, type Served, serve } from '../serve/millrace.js';
import { prepareMinilm } from '../serve/minilm.js';
import { Peers } from '../serve/peers.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { CLIENTS, closedPeak } from '../serve/sustained.js';

type Target = Pick<Served, 'url' | 'pids'>;

/** A server with the answer at hand, in a process of its own. */
async function answering(bench: Bench, name: string): Promise<Target> {
  const child = new Child<never, { type: 'listening'; port: number }>('answering.js', [name]);
  bench.own(() => child.stop());
  const { port } = await child.ask(undefined, 'listening');
  return { url: `http://127.0.0.1:${port}`, pids: { gateway: child.pid } };
}

/** The peers' own cost of a request, beside ours: their bodies are sentences, their answer is one number. */
async function addPeers(bench: Bench, tally: Tally): Promise<void> {
  const peers = await Peers.open(bench, await prepareMinilm(), await SentenceLoad.prepare(bench));
  await interleave(
    bench.options.rounds,
    peers.names.map((name) => async () => {
      tally.add(`${name} no-op`, await peers.use(name, { noop: true }, (peer) => closedPeak(bench, peer)));
    }),
  );
}

export const overhead: Scenario = {
  name: 'overhead',
  summary:
    'the no-op model over the whole path against our gateway with a ready answer, and a bare Express app',
  async run(bench) {
    const targets: Record<string, Target> = {
      whole: await serve(bench, { models: [IDENTITY.name] }),
      'ready-gateway': await answering(bench, 'ready-gateway'),
      'bare-express': await answering(bench, 'bare-express'),
    };
    const tally = new Tally();
    await interleave(
      bench.options.rounds,
      Object.entries(targets).map(([side, { url, pids }]) => async () => {
        const target = { url: predictUrl({ url }, IDENTITY.name), pids, ...IDENTITY_REQUESTS };
        const measured = await closedPeak(bench, target);
        tally.add(side, measured);
        bench.say(`  ${side}: ${measured.requestsPerSecond.toFixed(0)} requests/s`);
      }),
    );
    if (bench.options.withPeers) await addPeers(bench, tally);
    else tally.note("--with-peers shows the peers' no-op figures beside these");
    const ratio = (against: string) =>
      pairedRatio(tally.values('whole', 'itemsPerSecond'), tally.values(against, 'itemsPerSecond'));
    return tally.outcome(
      [
        { name: 'against our gateway with the answer at hand', ratio: ratio('ready-gateway'), bar: 0.6 },
        { name: 'against a bare Express app', ratio: ratio('bare-express'), bar: 0.4 },
      ],
      { clients: CLIENTS },
    );
  },
};
