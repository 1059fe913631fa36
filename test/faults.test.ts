import { expect } from 'chai';
import { predict, until } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { askReferences, type References, startLoad } from './support/load.js';
import { MINILM, sampleSentences } from './support/minilm.js';

const CLIENTS = { clients: 16, clientTimeoutMs: 15_000 };

describe('the ring under faults', () => {
  let cluster: Cluster;
  let references: References;

  beforeEach(async () => {
    cluster = await Cluster.start({ models: [MINILM], workers: 2 });
    references = await askReferences(cluster.url, MINILM, (await sampleSentences()).slice(0, 40));
  });
  afterEach(() => cluster.stop());

  const load = () => startLoad([cluster.url], MINILM, references, CLIENTS);

  it('gives every request its value within 5 s of a worker’s kill -9', async () => {
    const running = load();
    await until(() => running.sent > 200);
    cluster.workers[0]?.kill('SIGKILL');
    const killedAt = running.sent;
    await until(() => running.sent > killedAt + 1000);
    const result = await running.stop();
    expect([...result.refused]).to.deep.equal([]);
    expect(result.right).to.equal(result.requests);
    expect(result.latencies.at(-1)).to.be.below(5000);
  });

  it('loses nothing accepted when Redis is killed and started again under load', async () => {
    const running = load();
    await until(() => running.sent > 200);
    await cluster.redis.kill9();
    await cluster.redis.start();
    const back = running.sent;
    await until(() => running.sent > back + 500);
    const result = await running.stop();
    expect(result.wrong).to.equal(0);
    // Only what was refused at the door may go without a value.
    expect([...result.refused.keys()].filter((key) => key !== '503 queue_unavailable')).to.deep.equal([]);
    const refused = result.refused.get('503 queue_unavailable') ?? 0;
    expect(result.right + refused).to.equal(result.requests);
  });

  it('finishes what a worker holds when it is told to end, and exits 0', async () => {
    const running = load();
    await until(() => running.sent > 200);
    const [worker] = cluster.workers;
    worker?.kill('SIGTERM');
    expect(await worker?.ended).to.equal(0);
    const after = running.sent;
    await until(() => running.sent > after + 200);
    const result = await running.stop();
    expect([...result.refused]).to.deep.equal([]);
    expect(result.right).to.equal(result.requests);
  });

  it('lets a gateway that is told to end answer those who wait, and exit 0', async () => {
    const waiting = Array.from({ length: 50 }, (_, i) =>
      predict(cluster.url, MINILM, `Waiting client number ${i}.`),
    );
    await until(async () => (await fetch(`${cluster.url}/metrics`)).ok);
    const [gateway] = cluster.gateways;
    gateway?.kill('SIGTERM');
    const answers = await Promise.allSettled(waiting);
    const lost = answers.filter(({ status }) => status === 'rejected').length;
    // A connection that the listener had not taken yet is refused; one that was taken is answered.
    expect(answers.length - lost).to.be.above(0);
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(String(answer.reason)).to.match(/fetch failed|503/);
    }
    expect(await gateway?.ended).to.equal(0);
  });

  it('has a new worker serve beside the others', async () => {
    const worker = await cluster.addWorker();
    const running = load();
    await until(async () => {
      const text = await (await fetch(`${worker.url}/metrics`)).text();
      return /millrace_worker_items_total\{.*outcome="ok".*\} [1-9]/.test(text);
    });
    const result = await running.stop();
    expect(result.right).to.equal(result.requests);
  });
});
