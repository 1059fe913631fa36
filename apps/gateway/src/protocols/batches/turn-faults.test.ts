import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { get, Harness, post } from '../../test-support/harness.js';
import { until } from '../../test-support/redis.js';

interface Answer {
  id: string;
  status: string;
  error: { code: string; message: string };
}

describe('a batch that has ended', () => {
  const harness = new Harness();
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-turns-'));
  });
  after(async () => {
    await harness.release();
    await rm(folder, { recursive: true, force: true });
  });

  it('says what can not be done with it, and how it stands', async () => {
    const { url } = await harness.gateway({ filesUrl: folder });
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([]), 'empty.jsonl');
    const sent = await fetch(`${url}/v1/files`, { method: 'POST', body: form });
    const { id: input_file_id } = (await sent.json()) as Answer;
    const fields = { input_file_id, endpoint: '/v1/embeddings', completion_window: '24h' };
    const { id } = (await post<Answer>(`${url}/v1/batches`, fields)).body;
    const at = `${url}/v1/batches/${id}`;
    await until('it has failed', async () => (await get<Answer>(at)).body.status === 'failed');
    for (const [turn, done] of Object.entries({ pause: 'paused', resume: 'resumed', cancel: 'cancelled' })) {
      const { status, body } = await post<Answer>(`${at}/${turn}`, '');
      expect(status).to.equal(409);
      expect(body.error).to.include({
        code: 'batch_ended',
        message: `The batch is failed; it can't be ${done}.`,
      });
    }
  });
});
