import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ChaosCluster } from './chaos-cluster.js';
import { RecordingClient } from './client.js';
import type { History } from './history.js';
import { judge } from './judge.js';
import type { Question } from './questions.js';
import type { Tamper } from './redis-link.js';

const WAIT_MS = 1000;

describe('the judge of a real run that was tampered with', () => {
  let cluster: ChaosCluster;
  let history: History;
  let client: RecordingClient;
  const now = () => performance.now();

  before(async () => {
    cluster = await ChaosCluster.start({ gateways: 1, workers: 1, models: ['identity'], env: {}, now });
  });
  beforeEach(() => {
    history = {
      requests: [],
      batches: [],
      faults: [],
      deaths: [],
      calm: { from: now(), to: now() },
      leftovers: [],
    };
    client = new RecordingClient(history, now, () => cluster.gatewayUrls, `tampering-${now()}`);
  });
  afterEach(() => {
    client.close();
    tamper(undefined);
  });
  after(() => cluster?.end());

  const ask = (text: string) => client.ask(echo(text), { waitMs: WAIT_MS });
  const tamper = (change: Tamper | undefined) => {
    for (const { link } of cluster.workers) link.tamper = change;
  };
  /** There is no load here whose throughput could be judged. */
  const judged = () => {
    const { problems, ...verdict } = judge(history, {});
    return { ...verdict, problems: problems.filter((problem) => !problem.startsWith('throughput')) };
  };

  it('finds nothing wrong where nothing was tampered with', async () => {
    await Promise.all(['first', 'other', 'third'].map(ask));
    expect(judged()).to.deep.include({ values: 3, problems: [] });
  });

  it('finds the request whose reply was dropped on its way to Redis', async () => {
    tamper((chunk) => {
      const text = chunk.toString('latin1');
      const [, id] = /mr-reply:\{identity@1\}:([0-9a-f-]{36})/.exec(text) ?? [];
      if (id === undefined || !text.includes('dropped')) return chunk;
      // Stored and published for a request that nobody sent.
      return Buffer.from(text.replaceAll(id, [...id].reverse().join('')), 'latin1');
    });
    await Promise.all(['first', 'dropped'].map(ask));
    expect(judged()).to.deep.include({ verdict: 'fail', values: 1, lost: 1 });
  });

  it('finds both requests whose replies were swapped', async () => {
    tamper((chunk) => {
      const swapped = { 'one of two': 'two of two', 'two of two': 'one of two' } as Record<string, string>;
      const text = chunk
        .toString('latin1')
        .replaceAll(/one of two|two of two/g, (found) => swapped[found] ?? '');
      return Buffer.from(text, 'latin1');
    });
    await Promise.all(['one of two', 'two of two'].map(ask));
    expect(judged()).to.deep.include({ verdict: 'fail', values: 0, wrong: 2 });
  });

  it('finds the request whose answer was held back past its deadline', async () => {
    const [gateway] = cluster.gateways;
    const asked = ask('delayed');
    await gateway?.signal('SIGSTOP');
    await sleep(WAIT_MS + 1500);
    await gateway?.signal('SIGCONT');
    await asked;
    expect(judged()).to.deep.include({ verdict: 'fail', late: 1 });
  });
});

function echo(text: string): Question {
  return {
    kind: 'identity',
    model: 'identity',
    inputs: [{ bytes: [text] }],
    asked: [text],
    recognise: (output) => String((output as { bytes_out?: string[] }).bytes_out?.[0]),
  };
}
