import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { uniqueName } from '../../test-support/redis.js';
import { StandInWorker } from '../../test-support/stand-in-worker.js';

interface Duration {
  count: number;
  ns: number;
}

interface ModelStats {
  name: string;
  version: string;
  last_inference: number;
  inference_count: number;
  execution_count: number;
  inference_stats: Record<string, Duration>;
}

describe('the Open Inference door, repository and statistics', () => {
  const harness = new Harness();
  const text = uniqueName('text');
  const identity = uniqueName('identity');
  const missing = uniqueName('missing');
  let gateway: Gateway;
  const infer = (data: string[], name = text) =>
    post(`${gateway.url}/v2/models/${name}/infer`, {
      inputs: [{ name: 'text', shape: [data.length], datatype: 'BYTES', data }],
    });
  const statsOf = async (path: string): Promise<ModelStats[]> =>
    (await get<{ model_stats: ModelStats[] }>(`${gateway.url}/v2/models/${path}`)).body.model_stats;

  before(async () => {
    for (const version of ['1', '2']) {
      await harness.worker(textModel(text, { version }), {
        verdict: (item) =>
          item === 'bad'
            ? { status: 'failed', code: 'text_too_long', message: 'Too long.' }
            : { status: 'ok' },
      });
    }
    const warming = new StandInWorker(identityModel(identity));
    await warming.announce('warming');
    harness.onRelease(() => warming.stop());
    gateway = await harness.gateway({ models: [text, missing], maxJobItems: 4 });
  });
  after(() => harness.release());

  it('lists what it knows of, with the state of each version', async () => {
    const { status, body } = await post<{ name: string }[]>(`${gateway.url}/v2/repository/index`, {});
    expect(status).to.equal(200);
    const own = body.filter(({ name }) => [text, identity, missing].includes(name));
    expect(own).to.have.deep.members([
      { name: text, version: '1', state: 'READY', reason: '' },
      { name: text, version: '2', state: 'READY', reason: '' },
      { name: identity, version: '1', state: 'UNAVAILABLE', reason: 'no worker serves it now' },
      { name: missing, state: 'UNAVAILABLE', reason: 'no worker has announced it yet' },
    ]);
  });

  it('lists the ready ones alone where so asked, and all for an empty body', async () => {
    const url = `${gateway.url}/v2/repository/index`;
    const { body: ready } = await post<{ name: string; state: string }[]>(url, { ready: true });
    expect(new Set(ready.map(({ state }) => state))).to.deep.equal(new Set(['READY']));
    const all = (await (await fetch(url, { method: 'POST' })).json()) as { name: string }[];
    expect(all.map(({ name }) => name)).to.include(missing);
    const wrong = await post(url, { ready: 'yes' });
    expect(wrong.status).to.equal(400);
    expect(wrong.body).to.deep.equal({ error: 'ready must be true or false.' });
  });

  it('says why it does not load and unload', async () => {
    for (const action of ['load', 'unload']) {
      const { status, body } = await post(`${gateway.url}/v2/repository/models/${text}/${action}`, {});
      expect(status).to.equal(501);
      expect(body.error).to.include('each worker serves those that it was started with');
    }
  });

  it('names the extensions that there are', async () => {
    const { body } = await get(`${gateway.url}/v2`);
    expect(body.extensions).to.deep.equal([
      'binary_tensor_data',
      'model_repository',
      'schedule_policy',
      'statistics',
    ]);
  });

  it('counts requests, items, runs and times of each version', async () => {
    const before = Date.now();
    const [empty] = await statsOf(`${text}/versions/2/stats`);
    expect(empty).to.deep.include({ name: text, version: '2', last_inference: 0, inference_count: 0 });
    expect((await infer(['a'])).status).to.equal(200);
    expect((await infer(Array(10).fill('b'))).status).to.equal(200);
    expect((await infer(['a', 'bad'])).status).to.equal(400);
    const predict = `${gateway.url}/v1/models/${text}/predict`;
    expect((await post(predict, { inputs: ['a', 'bad'], partial: true })).status).to.equal(200);

    const [stats] = await statsOf(`${text}/versions/2/stats`);
    // The stand-in runs each part by itself; a list of 10 travels in three.
    expect(stats).to.include({ inference_count: 13, execution_count: 6 });
    expect(stats?.last_inference).to.be.within(before, Date.now());
    const { success, fail, queue, compute_input, compute_infer, compute_output } =
      stats?.inference_stats ?? {};
    expect(success?.count).to.equal(3);
    expect(fail?.count).to.equal(1);
    for (const each of [queue, compute_input, compute_infer, compute_output]) {
      expect(each?.count).to.equal(3);
      expect(each?.ns).to.be.within(0, success?.ns ?? 0);
    }
    expect(success?.ns).to.be.within(1, (Date.now() - before + 5) * 1e6);
  });

  it('tells them of one version, of all of a model, and of all models', async () => {
    const both = await statsOf(`${text}/stats`);
    expect(both.map(({ version }) => version)).to.deep.equal(['1', '2']);
    expect(both[0]?.inference_count).to.equal(0);
    const all = await statsOf('stats');
    expect(all.map(({ name }) => name)).to.include.members([text, identity]);
    const unknown = await get(`${gateway.url}/v2/models/${text}/versions/7/stats`);
    expect(unknown.status).to.equal(404);
    expect(unknown.body.error).to.include('no such version');
  });
});
