import { expect } from 'chai';
import { prepareModel } from '../models/prepare.js';
import type { WireTensor } from '../session/messages.js';
import { SessionClient } from '../session/session-client.js';
import {
  type FaultyItem,
  faultyAnswers,
  faultyModels,
  faultyTensors,
  OUT_OF_RANGE,
  TOO_MANY_ELEMENTS,
} from './faulty-model.js';

describe('the faulty model', () => {
  let session: SessionClient;

  before(async () => {
    const { modelsDir, cacheDir, name, remove } = await faultyModels();
    const { modelFile, manifest } = await prepareModel({ modelsDir, cacheDir, name, env: {} });
    session = await SessionClient.open({ modelFile, device: 'cpu', session: manifest.session });
    await remove();
  });
  after(() => session.release());

  async function run(...items: FaultyItem[]) {
    const { outputs, runMs } = await session.run(faultyTensors(...items) as WireTensor[]);
    return { answers: faultyAnswers(outputs), runMs };
  }

  it('answers each item with its own value and index', async () => {
    const { answers } = await run(
      { value: 7 },
      { value: -1, index: 3 },
      { value: 2 ** 40, spins: 10, elements: 10 },
    );
    expect(answers).to.deep.equal([7, 2, 2 ** 40]);
  });

  it('throws for an index out of range and for an allocation that nobody could make', async () => {
    for (const bad of [{ index: OUT_OF_RANGE }, { elements: TOO_MANY_ELEMENTS }, { elements: -1 }]) {
      const error = await run({ value: 1 }, { value: 2, ...bad }).catch((reason: unknown) => reason);
      expect(error, JSON.stringify(bad)).to.have.property('code', 'inference_failed');
    }
    expect((await run({ value: 5 })).answers).to.deep.equal([5]);
  });

  it('runs as long as its loop is asked to turn', async () => {
    const { runMs } = await run({ value: 1, spins: 200_000 });
    const longer = await run({ value: 1, spins: 1_000_000 });
    expect(longer.answers).to.deep.equal([1]);
    expect(longer.runMs)
      .to.be.above(2 * runMs)
      .and.above(100);
  });
});
