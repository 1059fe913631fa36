import { expect } from 'chai';
import { type Batch, BatchesDoor } from '../../test-support/batches-door.js';
import { get, post } from '../../test-support/harness.js';
import { uniqueName } from '../../test-support/redis.js';

describe('the door of batches', function () {
  this.timeout(60_000);
  const door = new BatchesDoor();
  const { alice, as, bob, ended, make, many, turn, upload } = door;
  before(() => door.open());
  after(() => door.close());

  it('is the same batch when asked for again under one key, and no other', async () => {
    const input = await upload(many(3));
    const named = { 'idempotency-key': uniqueName('key') };
    const first = await make({ input_file_id: input }, named);
    const again = await make({ input_file_id: input }, named);
    expect(again.body.id).to.equal(first.body.id);
    const changed = await make({ input_file_id: input, endpoint: '/embed' }, named);
    expect(changed.status).to.equal(422);
    await ended(first.body.id);
    const init = { method: 'DELETE', headers: as(alice) };
    const deleted = await fetch(`${door.gateway.url}/v1/files/${input}`, init);
    expect(deleted.status).to.equal(200);
    expect((await make({ input_file_id: input }, named)).body.id).to.equal(first.body.id);
    const list = await get<{ data: Batch[] }>(`${door.gateway.url}/v1/batches?limit=100`, as(alice));
    expect(list.body.data.filter(({ id }) => id === first.body.id)).to.have.length(1);
  });

  it("shows nobody another key's batch or file", async () => {
    const input = await upload(many(3));
    const { body } = await make({ input_file_id: input });
    expect((await get(`${door.gateway.url}/v1/batches/${body.id}`, as(bob))).status).to.equal(404);
    expect((await turn(body.id, 'cancel', bob)).status).to.equal(404);
    const stolen = await post(
      `${door.gateway.url}/v1/batches`,
      { input_file_id: input, endpoint: '/v1/embeddings', completion_window: '24h' },
      as(bob),
    );
    expect(stolen.status).to.equal(404);
    const list = await get<{ data: Batch[] }>(`${door.gateway.url}/v1/batches`, as(bob));
    expect(list.body.data).to.deep.equal([]);
  });

  it('lists the newest first, page by page', async () => {
    const input = await upload(many(1));
    const made: string[] = [];
    for (let i = 0; i < 3; i++) made.push((await make({ input_file_id: input })).body.id);
    const page = await get<{ data: Batch[]; has_more: boolean; last_id: string }>(
      `${door.gateway.url}/v1/batches?limit=2`,
      as(alice),
    );
    expect(page.body.data.map(({ id }) => id)).to.deep.equal([made[2], made[1]]);
    expect(page.body.has_more).to.equal(true);
    const next = await get<{ data: Batch[] }>(
      `${door.gateway.url}/v1/batches?limit=1&after=${page.body.last_id}`,
      as(alice),
    );
    expect(next.body.data.map(({ id }) => id)).to.deep.equal([made[0]]);
  });

  it('names the field that is at fault', async () => {
    const input = await upload(many(1));
    const fields: [Record<string, unknown>, string][] = [
      [{ input_file_id: input, endpoint: '/v1/chat/completions' }, 'endpoint'],
      [{ input_file_id: input, completion_window: '1y' }, 'completion_window'],
      [{ input_file_id: input, completion_window: '8d' }, 'completion_window'],
      [{ input_file_id: input, metadata: { a: 1 } }, 'metadata.a'],
      [{ input_file_id: 7 }, 'input_file_id'],
      [{ input_file_id: input, window: '24h' }, 'window'],
    ];
    for (const [body, param] of fields) {
      const answer = await make(body);
      expect(answer.status).to.equal(400);
      expect(answer.body).to.have.nested.property('error.param', param);
    }
    expect((await make({ input_file_id: 'file-none' })).status).to.equal(404);
    const named = await make({ input_file_id: input }, { 'idempotency-key': 'x'.repeat(256) });
    expect(named.status).to.equal(400);
    expect(named.body).to.have.nested.property('error.param', 'Idempotency-Key');
  });
});
