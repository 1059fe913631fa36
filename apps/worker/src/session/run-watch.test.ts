import { expect } from 'chai';
import { prepareModel } from '../models/prepare.js';
import { faultyModels, faultyTensors } from '../test-support/faulty-model.js';
import { until } from '../test-support/redis.js';
import type { WireTensor } from './messages.js';
import { monotonicMs } from './monotonic.js';
import { RunWatch } from './run-watch.js';
import { RunNotStarted, SessionClient } from './session-client.js';

describe('a session in a long run', () => {
  let session: SessionClient;
  let watch: RunWatch | undefined;

  beforeEach(async () => {
    const { modelsDir, cacheDir, name, remove } = await faultyModels();
    const { modelFile, manifest } = await prepareModel({ modelsDir, cacheDir, name, env: {} });
    session = await SessionClient.open({ modelFile, device: 'cpu', session: manifest.session });
    await remove();
  });
  afterEach(async () => {
    watch?.stop();
    await session.release();
  });

  const inputs = (spins: number) => faultyTensors({ value: 1, spins }) as WireTensor[];
  /** A second or so. */
  const LONG = 1_000_000;

  it('is told of past its limit, and not while it is within', async () => {
    const overran: SessionClient[] = [];
    watch = new RunWatch([session], 200, (client) => overran.push(client));
    await session.start(inputs(LONG / 2), { limitMs: 60_000 }).result;
    expect(overran).to.deep.equal([]);
    const run = session.start(inputs(LONG), { limitMs: 200 });
    await until(() => overran.length > 0);
    expect(session.head?.id).to.equal(run.id);
    await run.result;
  });

  it('does not count the run before, in whose slot a short one waited', async () => {
    const overran: SessionClient[] = [];
    watch = new RunWatch([session], 200, (client) => overran.push(client));
    const long = session.start(inputs(LONG), { limitMs: 60_000 });
    await session.start(inputs(0), { limitMs: 200 }).result;
    await long.result;
    expect(overran).to.deep.equal([]);
  });

  it('does not count the time in which this process stood still', () => {
    const overran: number[] = [];
    void session.start(inputs(LONG), { limitMs: 5000 });
    watch = new RunWatch([session], 5000, (_, ms) => overran.push(ms));
    // As a stopped process that goes on: no look for ten seconds, then two at once.
    const now = performance.now.bind(performance);
    try {
      for (const aheadMs of [0, 10_000, 20_000]) {
        performance.now = () => now() + aheadMs;
        watch.look();
      }
    } finally {
      performance.now = now;
    }
    expect(overran).to.deep.equal([]);
  });

  it('starts nothing behind it whose deadline passed meanwhile, nor what was called off', async () => {
    const long = session.start(inputs(LONG));
    const late = session.start(inputs(0), { startBy: monotonicMs() + 100 });
    expect(await late.result.catch((error: unknown) => error)).to.be.instanceOf(RunNotStarted);
    await long.result;
    const again = session.start(inputs(LONG));
    const cancelled = session.start(inputs(0), { startBy: monotonicMs() + 60_000 });
    session.skip(cancelled.id);
    expect(await cancelled.result.catch((error: unknown) => error)).to.be.instanceOf(RunNotStarted);
    await again.result;
    expect((await session.run(inputs(0))).outputs).to.have.length(1);
  });
});
