import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness } from '../test-support/harness.js';
import { identityModel, textModel } from '../test-support/models.js';
import { RawClient } from '../test-support/raw-client.js';
import { uniqueName, until } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

const ANSWER_BYTES = 4_000_000;
/** More than the buffers of both ends hold. */
const ANSWERS = 4;

describe('answers that wait to be read', () => {
  const harness = new Harness();
  const model = uniqueName('many-unread');
  const body = JSON.stringify({ inputs: { bytes: ['x'.repeat(ANSWER_BYTES)] } });
  const ask =
    `POST /v1/models/${model}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  before(() => harness.worker(identityModel(model)));
  after(() => harness.release());

  function unreading(gateway: Gateway): RawClient {
    const client = new RawClient(gateway);
    client.socket.pause();
    for (let i = 0; i < ANSWERS; i++) client.say(ask);
    return client;
  }

  const metric = async (gateway: Gateway, name: string): Promise<number> => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(new RegExp(`^millrace_gateway_${name} (\\d+)$`, 'm').exec(metrics)?.[1]);
  };

  it('are cut off when they are too many together, the oldest first, long before each has waited too long', async () => {
    const gateway = await harness.gateway({ maxUnreadBytes: 2.5 * ANSWER_BYTES });
    const first = unreading(gateway);
    await until('an answer waits', async () => (await metric(gateway, 'unread_bytes')) > 0);
    const started = performance.now();
    const others = [unreading(gateway), unreading(gateway), unreading(gateway)];
    await until('one is cut off', async () => (await metric(gateway, 'unread_answers_cut_total')) > 0);
    first.socket.resume();
    await first.closed;
    expect(performance.now() - started).to.be.below(9_000);
    for (const { socket } of others) socket.destroy();
    await until('none waits', async () => (await metric(gateway, 'unread_bytes')) === 0);
  });

  it('are whole for a client that reads, however late it begins', async () => {
    const gateway = await harness.gateway();
    const client = unreading(gateway);
    await until('an answer waits', async () => (await metric(gateway, 'unread_bytes')) > 0);
    client.socket.resume();
    await until('all are there', () => client.heard.length > ANSWERS * ANSWER_BYTES);
    await until('all are whole', () => client.statuses.length === ANSWERS && client.heard.endsWith('}}'));
    expect(await metric(gateway, 'unread_answers_cut_total')).to.equal(0);
    expect(await metric(gateway, 'unread_bytes')).to.equal(0);
    client.socket.destroy();
  });

  it('behind one that never comes are forgotten with their connection: no drain waits for them', async () => {
    const name = uniqueName('pipelined');
    const idle = new StandInWorker(textModel(name));
    await idle.announce();
    harness.onRelease(() => idle.stop());
    const gateway = await harness.gateway({ graceMs: 20_000 });
    const text = '{"inputs":"a"}';
    const waits =
      `POST /v1/models/${name}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${text.length}\r\n\r\n${text}`;
    const live = 'GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n';
    const client = new RawClient(gateway).say(waits + live.repeat(12));
    const counted = async (): Promise<number> => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      const { count } =
        /^millrace_request_duration_seconds_count{.*operations.*} (?<count>\d+)$/m.exec(metrics)?.groups ??
        {};
      return Number(count ?? 0);
    };
    await until('what is behind is answered', async () => (await metric(gateway, 'unread_bytes')) > 0);
    const before = await counted();
    client.socket.destroy();
    await until('all have ended', async () => (await counted()) >= before + 12);
    const started = performance.now();
    await gateway.close();
    expect(performance.now() - started).to.be.below(10_000);
  });
});
