import { jobId, queueName } from '@millrace/shared';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { DashboardClient } from '../test-support/dashboard-client.js';
import { get, Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { uniqueName, until } from '../test-support/redis.js';

const PASSWORD = 'correct horse';

describe('a job that is promoted from the dashboard', () => {
  const harness = new Harness();
  const model = uniqueName('promoted');
  const queue = queueName(model, '1');
  let gateway: Gateway;
  let dashboard: DashboardClient;

  before(async () => {
    await harness.worker(textModel(model));
    gateway = await harness.gateway({
      dashboardPassword: PASSWORD,
      dashboardAdmin: true,
    });
    dashboard = await DashboardClient.login(gateway, PASSWORD);
    await until('the queue is shown', async () => (await dashboard.page('/api/queues')).includes(queue));
  });
  after(() => harness.release());

  it('runs at once where it waits for its time, and is refused by name where it does not', async () => {
    const later = new Date(Date.now() + 3600_000).toISOString();
    const { body } = await post<{ id: string }>(
      `${gateway.url}/v1/models/${model}/predict`,
      { inputs: 'a text' },
      { prefer: 'respond-async', 'millrace-not-before': later },
    );
    const job = jobId(body.id, 0);
    expect((await dashboard.act(queue, job, 'promote')).status).to.equal(204);
    const done = await get<{ state: string }>(`${gateway.url}/v1/jobs/${body.id}?wait=10`);
    expect(done.body.state).to.equal('done');
    const again = await dashboard.act(queue, job, 'promote');
    expect(again.status).to.equal(409);
    expect(await again.text()).to.include('The job waits for no time.');
  });
});
