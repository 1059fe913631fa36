import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Harness, post } from '#gateway/test-support/harness.js';
import { textModel } from '#gateway/test-support/models.js';
import { testRedisUrl, uniqueName, until } from '#gateway/test-support/redis.js';
import { MillraceRunner } from './support/millrace-process.js';

describe('an Idempotency-Key whose gateway was killed', () => {
  const harness = new Harness();
  const runner = new MillraceRunner();
  after(async () => {
    await harness.release();
    await runner.clean();
  });

  it('lets a retry at another gateway take over and run, though it has little time itself', async () => {
    const model = uniqueName('takeover');
    let arrived = 0;
    const worker = await harness.worker(textModel(model), {
      // The first is never answered.
      before: () => (arrived++ === 0 ? new Promise(() => undefined) : undefined),
    });
    const doomed = runner.run({
      args: ['gateway', '--port', '0', '--models', model],
      env: { REDIS_URL: testRedisUrl() },
    });
    const [, url] = await doomed.says(/serves (http:\S+?)\. /);
    const other = await harness.gateway({ models: [model] });
    const headers = { 'idempotency-key': randomUUID() };
    const body = { inputs: 'a', waitMs: 2500 };
    const first = post(`${url}/v1/models/${model}/predict`, body, headers).then(
      () => 'answered',
      () => 'broken',
    );
    await until('the first runs', () => arrived === 1);
    doomed.signal('SIGKILL');
    const retry = await post(`${other.url}/v1/models/${model}/predict`, body, headers);
    expect(await first).to.equal('broken');
    expect(retry.status).to.equal(200);
    expect(retry.headers.get('idempotency-replayed')).to.equal(null);
    expect(worker.answered).to.have.length(1);
    const again = await post(`${other.url}/v1/models/${model}/predict`, body, headers);
    expect(again.headers.get('idempotency-replayed')).to.equal('true');
    expect(again.body).to.deep.equal(retry.body);
  });
});
