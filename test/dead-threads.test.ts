import { expect } from 'chai';
import { predict, until } from './support/client.js';
import { Cluster } from './support/cluster.js';

/** Ends, on SIGUSR2, the thread that was started last: a session's, since they are opened after the others. */
const THREAD_KILLER = [
  'let last;',
  "process.on('worker', (thread) => { last = thread; });",
  "process.on('SIGUSR2', () => { void last.terminate(); });",
].join('');

describe('a worker whose session thread died', function () {
  this.timeout(60_000);
  let cluster: Cluster;

  before(async () => {
    cluster = await Cluster.start({ models: ['identity'], workers: 1 });
  });
  after(() => cluster?.stop());

  it('exits non-zero, and what it was asked is answered by another', async () => {
    const worker = await cluster.addWorker({
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(THREAD_KILLER)}`,
      MILLRACE_LOG_LEVEL: 'silent',
    });
    const itemsOf = async (url: string): Promise<number> => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^millrace_worker_items_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
    };
    const ask = (count: number) =>
      Promise.all(
        Array.from({ length: count }, async (_, i) => {
          const { outputs } = await predict(cluster.url, 'identity', { fp32: [i] });
          expect(outputs).to.deep.equal([{ fp32_out: [i] }]);
        }),
      );
    while ((await itemsOf(worker.url)) === 0) await ask(16);
    // Nothing runs now: ending a thread in the middle of a run would abort the process.
    worker.kill('SIGUSR2');
    const ready = (): Promise<boolean> =>
      fetch(`${worker.url}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(async () => !(await ready()));
    await ask(64);
    expect(await worker.ended).to.equal(1);
    await ask(16);
  });
});
