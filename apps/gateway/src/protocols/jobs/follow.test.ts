import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until } from '../../test-support/redis.js';

const LISTENERS = 50;
const WATCHED_MS = 2200;

describe('many who follow one durable request', () => {
  let harness: Harness;
  let gateway: Gateway;
  let id: string;
  let letGo: () => void;

  beforeEach(async () => {
    harness = new Harness();
    const model = uniqueName('followed');
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    await harness.worker(textModel(model), {
      before: ({ parameters }) => (parameters.hold === true ? held : undefined),
    });
    gateway = await harness.gateway();
    const url = `${gateway.url}/v1/models/${model}/predict`;
    await until('the model is served', async () => (await post(url, { inputs: 'here?' })).status === 200);
    const sent = await post<{ id: string }>(
      url,
      { inputs: 'a', parameters: { hold: true } },
      { prefer: 'respond-async' },
    );
    id = sent.body.id;
  });
  afterEach(() => {
    letGo();
    return harness.release();
  });

  it('cost Redis no more than one does, and all hear of its end', async () => {
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    // Each look asks whether the reply is stored.
    const looks = async (): Promise<number> =>
      Number(/cmdstat_exists:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    const events = Array.from({ length: LISTENERS }, () => fetch(`${gateway.url}/v1/jobs/${id}/events`));
    const waits = Array.from({ length: LISTENERS }, () =>
      get<{ state: string }>(`${gateway.url}/v1/jobs/${id}?wait=30`),
    );
    const streams = await Promise.all(events);
    await new Promise((resolve) => setTimeout(resolve, WATCHED_MS));
    const before = await looks();
    await new Promise((resolve) => setTimeout(resolve, WATCHED_MS));
    // One a second; the queue's own scripts may ask now and then.
    expect((await looks()) - before).to.be.below(LISTENERS / 2);
    letGo();
    for (const { body } of await Promise.all(waits)) expect(body.state).to.equal('done');
    for (const text of await Promise.all(streams.map((stream) => stream.text()))) {
      expect(text.match(/^event: done$/gm)).to.have.length(1);
    }
  });
});
