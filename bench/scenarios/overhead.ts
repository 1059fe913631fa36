import { Child } from '../run/child.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { IDENTITY, IDENTITY_REQUESTS } from '../serve/identity.js';
import { predictUrl, type Served, serve } from '../serve/millrace.js';

const CLIENTS = 64;

type Target = Pick<Served, 'url' | 'pids'>;

/** A server with the answer at hand, in a process of its own. */
async function answering(bench: Bench, name: string): Promise<Target> {
  const child = new Child<never, { type: 'listening'; port: number }>('answering.js', [name]);
  bench.own(() => child.stop());
  const { port } = await child.ask(undefined, 'listening');
  return { url: `http://127.0.0.1:${port}`, pids: { gateway: child.pid } };
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
        const loop = { kind: 'closed', connections: CLIENTS } as const;
        const measured = await bench.load(
          { url: predictUrl({ url }, IDENTITY.name), loop, ...IDENTITY_REQUESTS },
          pids,
        );
        tally.add(side, measured);
        bench.say(`  ${side}: ${measured.requestsPerSecond.toFixed(0)} requests/s`);
      }),
    );
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
