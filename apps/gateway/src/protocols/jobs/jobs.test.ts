import type { KeyScope, Part } from '@millrace/shared';
import { expect } from 'chai';
import { makeApiKey } from '../../admission/api-keys.js';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { textModel } from '../../test-support/models.js';
import { uniqueName } from '../../test-support/redis.js';
import { embeddingOf, type StandInWorker } from '../../test-support/stand-in-worker.js';

type Key = ReturnType<typeof makeApiKey>;

interface Job {
  id: string;
  state: string;
  items: { total: number; done: number };
  position?: number;
  result?: { outputs: number[][] };
  error?: Record<string, unknown>;
  [field: string]: unknown;
}

const ASYNC = { prefer: 'respond-async' };
const SCOPES: KeyScope[] = ['infer', 'jobs'];

interface ServerSentEvent {
  id: string;
  name: string;
  data: string;
}

function eventsOf(text: string): ServerSentEvent[] {
  const blocks = text.split('\n\n').filter((block) => block.includes('event: '));
  return blocks.map((block) => {
    const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
    return { id: field('id'), name: field('event'), data: field('data') };
  });
}

describe('durable requests', () => {
  const harness = new Harness();
  const model = uniqueName('text');
  /** Texts that begin with "held" are answered once this resolves. */
  let letGo: () => void = () => undefined;
  let held = Promise.resolve();
  let worker: StandInWorker;
  let gateway: Gateway;
  let other: Gateway;
  const [alice, bob] = ['alice', 'bob'].map((name) => makeApiKey(name, SCOPES)) as [Key, Key];
  const as = ({ key }: Key) => ({ authorization: `Bearer ${key}` });
  const predict = (inputs: unknown, headers: Record<string, string> = {}, at = gateway) =>
    post<Job>(`${at.url}/v1/models/${model}/predict`, { inputs }, { ...as(alice), ...ASYNC, ...headers });
  const job = (path: string, headers: Record<string, string> = {}, at = gateway) =>
    get<Job>(`${at.url}/v1/jobs/${path}`, { ...as(alice), ...headers });
  const hold = (): void => {
    held = new Promise((resolve) => {
      letGo = resolve;
    });
  };
  const isHeld = (part: Part): boolean => part.parameters.hold === true;
  const cancel = async (id: string) => {
    const response = await fetch(`${gateway.url}/v1/jobs/${id}`, { method: 'DELETE', headers: as(alice) });
    return { status: response.status, body: (await response.json()) as Job };
  };
  const untilServed = async (url: string, headers: Record<string, string>): Promise<void> => {
    while ((await post(url, { inputs: 'here?' }, headers)).status !== 200) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  before(async () => {
    worker = await harness.worker(textModel(model), {
      before: (part) => (isHeld(part) ? held : undefined),
      verdict: (item) =>
        item.startsWith('bad')
          ? { status: 'failed', code: 'text_too_long', message: 'Too long.' }
          : { status: 'ok', tokens: 3 },
    });
    const flags = { maxJobItems: 4, apiKeys: [alice.entry, bob.entry], maxJobsPerKey: 50 };
    gateway = await harness.gateway(flags);
    other = await harness.gateway(flags);
  });
  after(() => harness.release());

  it('are answered 202 with their address, and collected at any gateway', async () => {
    const { status, headers, body } = await predict(['one', 'two']);
    expect(status).to.equal(202);
    expect(headers.get('preference-applied')).to.equal('respond-async');
    expect(headers.get('location')).to.equal(`/v1/jobs/${body.id}`);
    expect(body).to.include({ object: 'job', model });
    const done = await job(`${body.id}?wait=10`, {}, other);
    expect(done.status).to.equal(200);
    expect(done.body).to.deep.include({ state: 'done', items: { total: 2, done: 2 } });
    expect(done.body.result?.outputs[1]?.[1]).to.be.closeTo(embeddingOf('two')[1] ?? 0, 1e-6);
    const plain = await get(`${gateway.url}${String(done.body.resultUrl)}`, as(alice));
    expect(plain.body).to.deep.equal(done.body.result);
  });

  it('are answered at once where they asked to wait and it sufficed', async () => {
    const { status, body } = await predict('soon', { prefer: 'respond-async, wait=10' });
    expect(status).to.equal(200);
    expect(body).to.have.property('outputs').with.length(1);
  });

  it('turn into 202 when the wait is over, while the work goes on', async () => {
    hold();
    const body = { inputs: 'late', parameters: { hold: true } };
    const sent = await post<Job>(`${gateway.url}/v1/models/${model}/predict`, body, {
      ...as(alice),
      prefer: 'respond-async, wait=1',
    });
    expect(sent.status).to.equal(202);
    letGo();
    expect((await job(`${sent.body.id}?wait=10`)).body.state).to.equal('done');
  });

  it('answer 504, never 202, to who did not ask for it', async () => {
    hold();
    const body = { inputs: 'never', parameters: { hold: true } };
    const sent = await post(`${gateway.url}/v1/models/${model}/predict`, body, {
      ...as(alice),
      prefer: 'wait=1',
    });
    letGo();
    expect(sent.status).to.equal(504);
  });

  it('tell their place in the queue, and are taken back before they run', async () => {
    const name = uniqueName('paused');
    const paused = await harness.worker(textModel(name));
    const url = `${gateway.url}/v1/models/${name}/predict`;
    await untilServed(url, as(alice));
    await paused.pause();
    const ids: string[] = [];
    for (const text of ['first', 'second', 'third']) {
      ids.push((await post<Job>(url, { inputs: text }, { ...as(alice), ...ASYNC })).body.id);
    }
    const [, second, third] = ids;
    expect((await job(third ?? '')).body).to.include({ state: 'queued', position: 2 });
    const { status, body } = await cancel(second ?? '');
    expect(status).to.equal(200);
    expect(body).to.include({ state: 'cancelled' });
    expect((await job(third ?? '')).body).to.include({ position: 1 });
    expect((await cancel(second ?? '')).status).to.equal(409);
    paused.resume();
    expect((await job(`${third}?wait=10`)).body.state).to.equal('done');
    expect(paused.answered.map(({ requestId }) => requestId)).to.not.include(second);
    expect((await cancel(third ?? '')).status).to.equal(409);
  });

  it('wait for their time', async () => {
    const notBefore = new Date(Date.now() + 1500);
    const { body } = await predict('later', { 'millrace-not-before': notBefore.toISOString() });
    expect((await job(body.id)).body).to.include({ state: 'scheduled', notBefore: notBefore.toISOString() });
    expect((await job(`${body.id}?wait=10`)).body.state).to.equal('done');
    const part = worker.answered.find(({ requestId }) => requestId === body.id);
    expect(Date.now()).to.be.at.least(notBefore.getTime());
    expect(part?.stamps.enqueued).to.be.at.least(notBefore.getTime());
  });

  it('fail as their door says it', async () => {
    const { body } = await predict(['fine', 'bad']);
    const { body: failed } = await job(`${body.id}?wait=10`);
    expect(failed).to.include({ state: 'failed', errorStatus: 400 });
    expect(failed.error).to.include({ code: 'text_too_long', field: 'inputs[1]' });
    const result = await get(`${gateway.url}/v1/jobs/${body.id}/result`, as(alice));
    expect(result.status).to.equal(400);
    expect(result.headers.get('content-type')).to.equal('application/problem+json');
  });

  it('belong to the key that made them', async () => {
    const { body } = await predict('mine');
    for (const path of [body.id, `${body.id}/result`, `${body.id}/events`]) {
      expect((await job(path, as(bob))).status, path).to.equal(404);
    }
    const response = await fetch(`${gateway.url}/v1/jobs/${body.id}`, { method: 'DELETE', headers: as(bob) });
    expect(response.status).to.equal(404);
    const { body: list } = await get<{ data: Job[] }>(`${gateway.url}/v1/jobs`, as(bob));
    expect(list.data).to.deep.equal([]);
    expect((await job('00000000-0000-4000-8000-000000000000')).status).to.equal(404);
  });

  it('are listed by page, state and model, the newest first', async () => {
    const ids: string[] = [];
    for (const text of ['a', 'b', 'c']) ids.unshift((await predict(text)).body.id);
    for (const id of ids) await job(`${id}?wait=10`);
    const list = (query: string) =>
      get<{ data: Job[]; next?: string }>(`${gateway.url}/v1/jobs?model=${model}&${query}`, as(alice));
    const first = await list('limit=2&state=done');
    expect(first.body.data.map(({ id }) => id)).to.deep.equal(ids.slice(0, 2));
    const second = await list(`limit=1&state=done&cursor=${first.body.next}`);
    expect(second.body.data.map(({ id }) => id)).to.deep.equal(ids.slice(2));
    expect((await list('state=scheduled')).body.data).to.deep.equal([]);
    expect((await list('state=sleeping')).status).to.equal(400);
    expect((await list('limit=101')).body).to.deep.include({ field: 'limit' });
  });

  it('say 304 while nothing has changed', async () => {
    const { body } = await predict('once');
    const done = await job(`${body.id}?wait=10`);
    const etag = done.headers.get('etag') ?? '';
    const again = await fetch(`${gateway.url}/v1/jobs/${body.id}`, {
      headers: { ...as(alice), 'if-none-match': etag },
    });
    expect(again.status).to.equal(304);
  });

  it('tell their listeners of every change, and go on where a connection broke', async () => {
    hold();
    const inputs = Array.from({ length: 6 }, (_, i) => `text ${i}`);
    const sent = await post<Job>(
      `${gateway.url}/v1/models/${model}/predict`,
      { inputs, parameters: { hold: true } },
      { ...as(alice), ...ASYNC },
    );
    const response = await fetch(`${other.url}/v1/jobs/${sent.body.id}/events`, { headers: as(alice) });
    expect(response.headers.get('content-type')).to.include('text/event-stream');
    letGo();
    const events = eventsOf(await response.text());
    expect(events.at(-1)?.name).to.equal('done');
    expect(JSON.parse(events.at(-1)?.data ?? '')).to.deep.include({ items: { total: 6, done: 6 } });
    const resumed = await fetch(`${other.url}/v1/jobs/${sent.body.id}/events`, {
      headers: { ...as(alice), 'last-event-id': events.at(-1)?.id ?? '' },
    });
    expect(eventsOf(await resumed.text())).to.deep.equal([]);
  });

  it('are gone when their time is over', async () => {
    const { body } = await predict('brief', { 'millrace-keep-ms': '1000' });
    expect((await job(`${body.id}?wait=5`)).body.state).to.equal('done');
    const gone = async (): Promise<number> => (await job(body.id)).status;
    while ((await gone()) !== 410) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  it('are limited by key', async () => {
    const carol = makeApiKey('carol', SCOPES);
    const limited = await harness.gateway({ apiKeys: [carol.entry], maxJobsPerKey: 1 });
    await untilServed(`${limited.url}/v1/models/${model}/predict`, as(carol));
    expect((await predict('one', as(carol), limited)).status).to.equal(202);
    const refused = await predict('two', as(carol), limited);
    expect(refused.status).to.equal(429);
    expect(refused.body).to.include({ code: 'job_limit' });
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 3600);
  });

  it('count for nothing in admission once they are done', async () => {
    const tight = await harness.gateway({ apiKeys: [alice.entry], maxQueuedItems: 40 });
    await untilServed(`${tight.url}/v1/models/${model}/predict`, as(alice));
    const inputs = Array.from({ length: 32 }, (_, i) => `text ${i}`);
    for (let round = 0; round < 4; round++) {
      const { status, body } = await predict(inputs, {}, tight);
      expect(status, `round ${round}`).to.equal(202);
      expect((await job(`${body.id}?wait=10`, {}, tight)).body.state).to.equal('done');
      // Two readings of the queue later it is known.
      await new Promise((resolve) => setTimeout(resolve, 600));
    }
    const never = await predict([...inputs, ...inputs], {}, tight);
    expect(never.status).to.equal(400);
    expect(never.body).to.include({ code: 'too_many_items' });
  });

  it('are made only by who may ask for them', async () => {
    const dave = makeApiKey('dave', ['infer']);
    const strict = await harness.gateway({ apiKeys: [dave.entry] });
    const url = `${strict.url}/v1/models/${model}/predict`;
    await untilServed(url, as(dave));
    const { status, body } = await post(url, { inputs: 'x' }, { ...as(dave), ...ASYNC });
    expect(status).to.equal(403);
    expect(body.detail).to.include('"jobs"');
  });

  it('are made once under one Idempotency-Key', async () => {
    const key = { 'idempotency-key': uniqueName('key') };
    const first = await predict('once only', key);
    const again = await predict('once only', key, other);
    expect(again.status).to.equal(202);
    expect(again.body.id).to.equal(first.body.id);
    expect(again.headers.get('location')).to.equal(first.headers.get('location'));
  });

  it('alone hear what is said of keeping', async () => {
    for (const name of ['Millrace-Keep-Ms', 'Millrace-Not-Before', 'Millrace-Callback']) {
      const { status, body } = await predict('x', { prefer: '', [name]: '1' });
      expect(status, name).to.equal(400);
      expect(body).to.include({ field: name });
    }
  });

  it('have the priority that the body says, then that of the header', async () => {
    const url = `${gateway.url}/v1/models/${model}/predict`;
    const headers = { ...as(alice), ...ASYNC, 'millrace-priority': 'normal' };
    const byBody = await post<Job>(url, { inputs: 'x', priority: 'bulk' }, headers);
    const byHeader = await post<Job>(url, { inputs: 'x' }, headers);
    expect([byBody.body.priority, byHeader.body.priority]).to.deep.equal(['bulk', 'normal']);
  });

  it('refuse what their headers do not say rightly', async () => {
    const faults: [string, string][] = [
      ['Millrace-Keep-Ms', '0'],
      ['Millrace-Keep-Ms', 'long'],
      ['Millrace-Not-Before', 'tomorrow'],
      ['Millrace-Not-Before', '2999-01-01T00:00:00Z'],
      ['Millrace-Priority', 'urgent'],
    ];
    for (const [name, value] of faults) {
      const { status, body } = await predict('x', { [name]: value });
      expect(status, `${name}: ${value}`).to.equal(400);
      expect(body, `${name}: ${value}`).to.include({ field: name });
    }
  });
});
