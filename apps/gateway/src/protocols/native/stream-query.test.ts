import { expect } from 'chai';
import { Harness } from '../../test-support/harness.js';
import { textModel } from '../../test-support/models.js';
import { uniqueName, until } from '../../test-support/redis.js';

describe('the query of a stream of lines', () => {
  const harness = new Harness();
  after(() => harness.release());

  it('is refused where it has anything but the order, so that a misspelt one is found', async () => {
    const model = uniqueName('queried');
    await harness.worker(textModel(model));
    const { url } = await harness.gateway();
    await until('the model is served', async () => (await fetch(`${url}/v2/models/${model}/ready`)).ok);
    const send = (query: string): Promise<Response> =>
      fetch(`${url}/v1/models/${model}/predict${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-ndjson' },
        body: '{"inputs":"a"}\n',
      });
    expect((await send('?order=finished')).status).to.equal(200);
    const refused = await send('?ordr=finished');
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.include({
      code: 'invalid_input',
      field: 'ordr',
      detail: 'ordr is not a field here; there are order.',
    });
  });
});
