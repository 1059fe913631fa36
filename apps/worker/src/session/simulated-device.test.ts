import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger, loadSettings, StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { prepareModel } from '../models/prepare.js';
import { ServedModel } from '../models/served-model.js';
import { CurveStore } from '../planning/curve-store.js';
import { PreprocessPool } from '../tasks/preprocess-pool.js';
import { lookupModels, type TestModels } from '../test-support/models.js';

const SIMULATE = { runMs: 20, itemMs: 5 };

describe('a simulated device', () => {
  const logger = createLogger('silent', {});
  const preprocess = new PreprocessPool(1);
  let models: TestModels;

  before(async () => {
    models = await lookupModels();
    const file = join(models.modelsDir, models.name, 'model.yaml');
    const manifest = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...manifest, simulate: SIMULATE }));
  });

  after(async () => {
    await preprocess.close();
    await models.remove();
  });

  async function load(flags: object): Promise<ServedModel> {
    const { modelsDir, cacheDir, name } = models;
    const settings = loadSettings({}, { dataDir: cacheDir, ...flags });
    const prepared = await prepareModel({ modelsDir, cacheDir, name, env: {} });
    return await ServedModel.load(prepared, settings, preprocess, new CurveStore(cacheDir, logger), logger);
  }

  it('is refused unless it is asked for', async () => {
    const error = await load({}).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(StartupError);
    expect((error as StartupError).message).to.include('simulates a device (runMs 20, itemMs 5)');
    expect((error as StartupError).nextStep).to.include('MILLRACE_ALLOW_SIMULATED');
  });

  it('takes its time for every run, answers rightly, and is named in the metadata', async () => {
    const model = await load({ allowSimulated: true });
    const { sessions, task } = model;
    const item = task.sample(1);
    const { outputs, runMs } = await sessions.run(task.assemble([item, item, item]));
    await model.close();
    expect(outputs[0]?.shape).to.deep.equal([3, 1]);
    expect(runMs).to.be.at.least(SIMULATE.runMs + 3 * SIMULATE.itemMs - 1);
    expect(task.description.platform).to.equal('onnxruntime_onnx_on_simulated_device');
  });

  it('has a run ahead of the next batch until it is done, and room for one batch behind it', async () => {
    const model = await load({ allowSimulated: true });
    const { sessions, task } = model;
    const start = () => sessions.start(task.assemble([task.sample(1)]), { predictedMs: 5000 }).result;
    expect(sessions.nextInMs).to.equal(0);
    const first = start();
    expect(sessions.nextInMs).to.be.within(1, 5000);
    const second = start();
    expect(sessions.nextInMs).to.equal(undefined);
    await first;
    expect(sessions.nextInMs).to.be.within(1, 5000);
    await second;
    expect(sessions.nextInMs).to.equal(0);
    await model.close();
  });
});
