import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bytesTensor, type Datatype, elementBytes, type Tensor } from '@millrace/shared';
import { expect } from 'chai';
import { binaryBody, binaryInput, postBinary } from '#gateway/test-support/binary.js';
import { Cluster } from './support/cluster.js';
import { DATATYPES_MODEL, datatypesModels } from './support/datatypes-model.js';
import { cosine, INT8_TOLERANCE, KNOWN_COSINES, MINILM } from './support/minilm.js';

const DEFAULT_URL = 'http://127.0.0.1:8080';
/** What onnxruntime takes: all but BF16. */
const DATATYPES: readonly Datatype[] = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
];

/** Two items of three elements, their bytes all different. */
function tensorOf(datatype: Datatype): Tensor {
  const name = datatype.toLowerCase();
  if (datatype === 'BYTES') return bytesTensor(name, ['', 'é', '🐸', 'x'.repeat(3000), '\n', '"'], [2, 3]);
  const data = Uint8Array.from({ length: 6 * elementBytes(datatype) }, (_, i) =>
    datatype === 'BOOL' ? i % 2 : (i * 37 + 3) % 251,
  );
  return { name, datatype, shape: [2, 3], data };
}

describe('the Open Inference door with real models', () => {
  let cluster: Cluster;
  let models: Awaited<ReturnType<typeof datatypesModels>>;
  before(async () => {
    models = await datatypesModels([MINILM, 'identity']);
    cluster = await Cluster.start({
      models: [MINILM, 'identity', DATATYPES_MODEL],
      env: {
        MILLRACE_MODELS_DIR: models.modelsDir,
        MILLRACE_MAX_BODY_BYTES: String(16 << 20),
        // However busy the machine: how fast it is, is no matter here.
        MILLRACE_WAIT_MS: '60000',
      },
    });
  });
  after(async () => {
    await cluster?.stop();
    await models?.remove();
  });

  const ask = (model: string, json: object, tensors: readonly Uint8Array[]) => {
    const { body, jsonLength } = binaryBody(json, tensors);
    return postBinary(`${cluster.url}/v2/models/${model}/infer`, body, jsonLength);
  };
  const echo = async (model: string, tensor: Tensor) => {
    const inputs = [binaryInput(tensor)];
    const answer = await ask(model, { inputs, parameters: { binary_data_output: true } }, [tensor.data]);
    expect(answer.status, answer.json.error).to.equal(200);
    const name = `${tensor.name}_out`;
    expect(answer.json.outputs.map((output) => output.name)).to.deep.equal([name]);
    expect(answer.json.outputs[0]).to.deep.include({ datatype: tensor.datatype, shape: tensor.shape });
    return answer.bytes[name];
  };

  for (const datatype of DATATYPES) {
    it(`returns ${datatype} bit by bit`, async () => {
      const tensor = tensorOf(datatype);
      expect(await echo(DATATYPES_MODEL, tensor)).to.deep.equal(Buffer.from(tensor.data));
    });
  }

  for (const datatype of ['FP32', 'INT64', 'BOOL', 'UINT8', 'BYTES'] as const) {
    it(`returns ${datatype} of the identity model bit by bit`, async () => {
      const tensor = tensorOf(datatype);
      expect(await echo('identity', tensor)).to.deep.equal(Buffer.from(tensor.data));
    });
  }

  it('carries a tensor of several MB, in one part and in many', async () => {
    for (const items of [1, 500]) {
      const data = Buffer.alloc(items * Math.floor(6e6 / 4 / items) * 4);
      for (let i = 0; i < data.byteLength; i += 4) data.writeFloatLE(i / 7, i);
      const shape = [items, data.byteLength / 4 / items];
      const answer = await echo('identity', { name: 'fp32', datatype: 'FP32', shape, data });
      expect(answer?.equals(data)).to.equal(true);
    }
  });

  it('gives the known cosines to texts in bytes, and to a text alone', async () => {
    const url = `${cluster.url}/v2/models/${MINILM}/infer`;
    for (const { a, b, cosine: known } of KNOWN_COSINES) {
      const vectors: number[][] = [];
      for (const text of [a, b]) {
        const { bytes } = await postBinary(url, text, 0);
        vectors.push([...new Float32Array(new Uint8Array(bytes.embedding ?? []).buffer)]);
      }
      expect(cosine(vectors[0] ?? [], vectors[1] ?? [])).to.be.closeTo(known, INT8_TOLERANCE);
    }
  });

  it('refuses bytes that onnxruntime would take for other strings', async () => {
    for (const element of ['a\0b', Uint8Array.of(0xff)]) {
      const tensor = bytesTensor('bytes', [element], [1, 1]);
      const { status, json } = await ask('identity', { inputs: [binaryInput(tensor)] }, [tensor.data]);
      expect(status).to.equal(400);
      expect(json.error).to.include('"bytes"');
    }
  });

  it('does what its documentation shows', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-docs-'));
    try {
      const text = await readFile(new URL('../../docs/open-inference.md', import.meta.url), 'utf8');
      const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, code = '']) => ({
        language,
        code: code.replaceAll(DEFAULT_URL, cluster.url),
      }));
      let shown = 0;
      for (const [i, { language, code }] of blocks.entries()) {
        if (language !== 'sh') continue;
        const script = `set -euo pipefail\n${code.replaceAll('curl -s', 'curl -s --fail-with-body')}`;
        const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder });
        const next = blocks[i + 1];
        if (next?.language !== 'json') continue;
        expect(JSON.parse(stdout)).to.deep.equal(JSON.parse(next.code));
        shown += 1;
      }
      expect(shown).to.equal(2);
      expect((await stat(join(folder, 'vector.f32'))).size).to.equal(384 * 4);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
