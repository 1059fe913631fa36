import { join } from 'node:path';
import { seeded } from '#test/support/random.js';
import type { Bench, Measured, Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { IDENTITY_REQUESTS } from '../serve/identity.js';
import { MLP_WIDTH, wideMlp } from '../serve/made-models.js';
import { predictUrl, type Served, serve } from '../serve/millrace.js';
import type { Target } from '../serve/sustained.js';
import { TENSORS, writeDevice, writeModel } from '../serve/variants.js';

const BATCH = 32;
const SIMULATE = { runMs: 8, itemMs: 0.5 };
/** What arithmetic says that a batch is worth on the simulated device. */
const EXPECTED = (BATCH * (SIMULATE.runMs + SIMULATE.itemMs)) / (SIMULATE.runMs + BATCH * SIMULATE.itemMs);
/** Enough to have several batches of them waiting. */
const CLIENTS = { device: 256, mlp: 128 };
const INPUTS = 16;
const TOLERANCE = 1e-3;

const SIDES = { on: { maxItems: BATCH }, off: { maxItems: 1 } };

export const batchingOnOff: Scenario = {
  name: 'batching-on-off',
  summary: `batches of ${BATCH} against single items: a simulated device, and a network larger than any cache`,
  async run(bench) {
    const modelsDir = join(bench.dataDir, 'models');
    const file = await wideMlp(bench);
    const models: string[] = [];
    for (const [side, batching] of Object.entries(SIDES)) {
      await writeDevice(modelsDir, `device-${side}`, batching, SIMULATE);
      await writeMlp(modelsDir, `mlp-${side}`, batching, file);
      models.push(`device-${side}`, `mlp-${side}`);
    }
    bench.say(`device-*: a SIMULATED device (runMs ${SIMULATE.runMs}, itemMs ${SIMULATE.itemMs})`);
    const served = await serve(bench, {
      models,
      env: {
        MILLRACE_MODELS_DIR: modelsDir,
        MILLRACE_CACHE_DIR: join(bench.options.cacheDir, 'models'),
        MILLRACE_ALLOW_SIMULATED: 'true',
      },
    });
    const mlp = await mlpRequests(served, 'mlp-off');
    const tally = new Tally();
    tally.note(`device-on and device-off ran on a simulated device: ${JSON.stringify(SIMULATE)}`);
    await interleave(
      bench.options.rounds,
      models.map((model) => async () => {
        const isDevice = model.startsWith('device');
        const requests = isDevice ? IDENTITY_REQUESTS : mlp;
        const connections = isDevice ? CLIENTS.device : CLIENTS.mlp;
        const measured = await loadModel(bench, served, model, requests, connections);
        tally.add(model, measured);
        bench.say(`  ${model}: ${measured.itemsPerSecond.toFixed(0)} items/s`);
      }),
    );
    const ratio = (name: string) =>
      pairedRatio(
        tally.values(`${name}-on`, 'itemsPerSecond'),
        tally.values(`${name}-off`, 'itemsPerSecond'),
      );
    return tally.outcome(
      [
        {
          name: `simulated device, of the ${EXPECTED.toFixed(1)} that arithmetic gives`,
          ratio: ratio('device') / EXPECTED,
          bar: 0.85,
        },
        { name: 'network larger than the cache', ratio: ratio('mlp'), bar: 2 },
      ],
      { simulate: SIMULATE, expected: EXPECTED },
    );
  },
};

type Requests = Pick<Target, 'bodies' | 'itemsPerRequest' | 'check'>;

async function loadModel(
  bench: Bench,
  served: Served,
  model: string,
  requests: Requests,
  connections: number,
): Promise<Measured> {
  const spec = {
    url: predictUrl(served, model),
    loop: { kind: 'closed', connections } as const,
    ...requests,
  };
  return await bench.load(spec, served.pids);
}

async function writeMlp(modelsDir: string, name: string, batching: object, file: string): Promise<void> {
  const shape = [-1, MLP_WIDTH];
  const inputs = [{ name: 'x', datatype: 'FP32', shape }];
  const outputs = [{ name: 'y', datatype: 'FP32', shape }];
  const build = { from: 'onnx', file: 'model.onnx' };
  await writeModel(
    modelsDir,
    { ...TENSORS, name, build, inputs, outputs, batching: { ...batching } },
    { 'model.onnx': file },
  );
}

/** Inputs, and the answers to them one by one. */
async function mlpRequests(served: Served, model: string): Promise<Requests> {
  const random = seeded(5);
  const rows = Array.from({ length: INPUTS }, () =>
    Array.from({ length: MLP_WIDTH }, () => Number((random() * 2 - 1).toFixed(3))),
  );
  const bodies = rows.map((x) => JSON.stringify({ inputs: { x } }));
  const expected: Record<number, number[][]> = {};
  for (const [i, body] of bodies.entries()) {
    const response = await fetch(predictUrl(served, model), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    });
    const { outputs } = (await response.json()) as { outputs: { y: number[] }[] };
    expected[i] = [outputs[0]?.y ?? []];
  }
  return { bodies, itemsPerRequest: 1, check: { path: ['outputs', 0, 'y'], expected, tolerance: TOLERANCE } };
}
