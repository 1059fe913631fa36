import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { FAULTS } from './faults.js';
import { runChaos } from './run.js';

/** One of each sort that is over soon; `npm run chaos` has all of them. */
const SHORT = [
  'worker-kill',
  'worker-clock-jump',
  'gateway-kill',
  'gateway-link-cut',
  'redis-kill',
  'redis-client-kill',
  'client-vanish',
  'poison',
];

describe('two gateways, three workers and Redis under load', function () {
  this.timeout(180_000);

  it('answer everything they accepted, rightly and in time, whatever of them fails', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-chaos-'));
    const { verdict } = await runChaos({
      seed: 1,
      faults: FAULTS.filter(({ name }) => SHORT.includes(name)),
      faultMs: 12_000,
      calmMs: 4000,
      rate: 20,
      hurried: 0,
      kept: 0.2,
      bulkLines: 400,
      folder,
      say: () => undefined,
    });
    expect(Object.keys(verdict.faults)).to.have.members(SHORT);
    expect(verdict.problems, JSON.stringify(verdict)).to.deep.equal([]);
    expect(verdict.verdict).to.equal('pass');
    expect(verdict.async.collected).to.be.above(20);
    expect(verdict.batches.files).to.be.above(0);
    await rm(folder, { recursive: true });
  });
});
