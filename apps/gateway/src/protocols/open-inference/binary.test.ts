import {
  BULL_PREFIX,
  bytesTensor,
  DATATYPES,
  type Datatype,
  elementBytes,
  PRIORITIES,
  type Tensor,
} from '@millrace/shared';
import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { type BinaryAnswer, binaryBody, binaryInput, postBinary } from '../../test-support/binary.js';
import { Harness, post } from '../../test-support/harness.js';
import { DIMENSIONS, everyTypeModel, oneInputModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until } from '../../test-support/redis.js';
import { embeddingOf, StandInWorker } from '../../test-support/stand-in-worker.js';

/** Two items of three elements, of bytes that mean different things in every datatype. */
function tensorOf(datatype: Datatype): Tensor {
  const name = datatype.toLowerCase();
  const shape = [2, 3];
  if (datatype === 'BYTES') {
    return bytesTensor(name, ['', 'é', Uint8Array.of(0, 255, 254), 'x'.repeat(300), 'a\0b', '\n'], shape);
  }
  const data = Uint8Array.from({ length: 6 * elementBytes(datatype) }, (_, i) =>
    datatype === 'BOOL' ? i % 2 : (i * 37 + 129) % 256,
  );
  return { name, datatype, shape, data };
}

describe('the Open Inference door, tensors in bytes', () => {
  const harness = new Harness();
  const every = everyTypeModel(uniqueName('every'));
  const text = textModel(uniqueName('text'));
  const vector = oneInputModel(uniqueName('vector'), 'FP32', [2, -1]);
  const fixed = oneInputModel(uniqueName('fixed'), 'INT16', [3]);
  const word = oneInputModel(uniqueName('word'), 'BYTES', [1]);
  const vague = oneInputModel(uniqueName('vague'), 'FP32', [-1, -1]);
  const models = [every, text, vector, fixed, word, vague];
  let everyWorker: StandInWorker;
  let gateway: Gateway;
  const url = (name: string) => `${gateway.url}/v2/models/${name}/infer`;
  const ask = (name: string, json: object, tensors: readonly Uint8Array[]): Promise<BinaryAnswer> => {
    const { body, jsonLength } = binaryBody(json, tensors);
    return postBinary(url(name), body, jsonLength);
  };

  before(async () => {
    everyWorker = await harness.worker(every);
    for (const model of models.slice(1)) await harness.worker(model);
    gateway = await harness.gateway({ models: models.map(({ name }) => name), maxJobItems: 3 });
  });
  after(() => harness.release());

  for (const datatype of DATATYPES) {
    it(`gives ${datatype} back bit by bit, there and back in bytes`, async () => {
      const tensor = tensorOf(datatype);
      const { status, headers, json, bytes } = await ask(
        every.name,
        { id: 'mine', inputs: [binaryInput(tensor)], parameters: { binary_data_output: true } },
        [tensor.data],
      );
      expect(status).to.equal(200);
      expect(headers.get('content-type')).to.equal('application/octet-stream');
      expect(json).to.deep.equal({
        model_name: every.name,
        model_version: '1',
        id: 'mine',
        outputs: [
          {
            name: `${tensor.name}_out`,
            shape: [2, 3],
            datatype,
            parameters: { binary_data_size: tensor.data.byteLength },
          },
        ],
      });
      expect(bytes[`${tensor.name}_out`]).to.deep.equal(Buffer.from(tensor.data));
    });
  }

  it('takes bytes and JSON in one request, and gives each output as asked', async () => {
    const tensors = (['INT8', 'UINT16', 'FP16'] as const).map(tensorOf);
    const fp32 = { name: 'fp32', datatype: 'FP32', shape: [2, 1], data: [0.5, -3] };
    const [int8, uint16, fp16] = tensors.map(binaryInput);
    const { json, bytes } = await ask(
      every.name,
      {
        inputs: [int8, fp32, uint16, fp16],
        parameters: { binary_data_output: true },
        outputs: [
          { name: 'fp16_out' },
          { name: 'fp32_out', parameters: { binary_data: false } },
          { name: 'int8_out', parameters: { binary_data: true } },
        ],
      },
      tensors.map(({ data }) => data),
    );
    expect(json.outputs).to.deep.equal([
      { name: 'fp16_out', shape: [2, 3], datatype: 'FP16', parameters: { binary_data_size: 12 } },
      { name: 'fp32_out', shape: [2, 1], datatype: 'FP32', data: [0.5, -3] },
      { name: 'int8_out', shape: [2, 3], datatype: 'INT8', parameters: { binary_data_size: 6 } },
    ]);
    expect(bytes.fp16_out).to.deep.equal(Buffer.from(tensors[2]?.data ?? []));
    expect(bytes.int8_out).to.deep.equal(Buffer.from(tensors[0]?.data ?? []));
  });

  it('answers bytes with JSON unless bytes are asked for, and JSON with bytes if they are', async () => {
    const tensor = tensorOf('INT32');
    const outputs = [{ name: 'int32_out' }];
    const plain = await ask(every.name, { inputs: [binaryInput(tensor)], outputs }, [tensor.data]);
    expect(plain.headers.get('content-type')).to.equal('application/json');
    expect(plain.headers.get('inference-header-content-length')).to.equal(null);
    const data = plain.json.outputs[0]?.data ?? [];
    expect(data).to.have.length(6);
    const body = {
      inputs: [{ name: 'int32', datatype: 'INT32', shape: [2, 3], data }],
      outputs: [{ name: 'int32_out', parameters: { binary_data: true } }],
    };
    const { bytes } = await postBinary(url(every.name), JSON.stringify(body));
    expect(bytes.int32_out).to.deep.equal(Buffer.from(tensor.data));
  });

  it('keeps a list in order that travels in several jobs', async () => {
    const data = new Uint8Array(Float32Array.from({ length: 20 }, (_, i) => i / 7).buffer);
    const tensor: Tensor = { name: 'fp32', datatype: 'FP32', shape: [10, 2], data };
    const { bytes } = await ask(
      every.name,
      { inputs: [binaryInput(tensor)], outputs: [{ name: 'fp32_out', parameters: { binary_data: true } }] },
      [data],
    );
    expect(bytes.fp32_out).to.deep.equal(Buffer.from(data));
  });

  it('embeds texts that come as bytes, and gives vectors as bytes', async () => {
    const sentences = ['a', 'zwei Wörter', 'drei'];
    const { data } = bytesTensor('text', sentences);
    const input = { name: 'text', datatype: 'BYTES', shape: [3, 1] };
    const parameters = { binary_data_size: data.byteLength };
    const { json, bytes } = await ask(
      text.name,
      { inputs: [{ ...input, parameters }], parameters: { binary_data_output: true } },
      [data],
    );
    expect(json.outputs[0]?.shape).to.deep.equal([3, DIMENSIONS]);
    const floats = new Float32Array(new Uint8Array(bytes.embedding ?? []).buffer);
    expect([...floats]).to.deep.equal(sentences.flatMap((each) => embeddingOf(each).map(Math.fround)));
  });

  it('refuses FP16 and BF16 in JSON, both ways, before anything is done', async () => {
    const answered = everyWorker.answered.length;
    for (const datatype of ['FP16', 'BF16'] as const) {
      const name = datatype.toLowerCase();
      const inputs = [{ name, datatype, shape: [1, 1], data: [1] }];
      const outputs = [{ name: `${name}_out`, parameters: { binary_data: true } }];
      const there = await post(url(every.name), { inputs, outputs });
      expect(there.status).to.equal(400);
      expect(there.body.error).to.include('inputs[0].data').and.include('no form in JSON');
      const tensor = tensorOf(datatype);
      const back = await ask(
        every.name,
        { inputs: [binaryInput(tensor)], outputs: [{ name: `${name}_out` }] },
        [tensor.data],
      );
      expect(back.status).to.equal(400);
      expect(back.json.error).to.include(`output ${name}_out`).and.include('binary_data');
      expect(back.headers.get('content-type')).to.equal('application/json');
    }
    expect(everyWorker.answered).to.have.length(answered);
  });

  it('keeps every digit of 64-bit integers in JSON, both ways', async () => {
    const int64 = ['9223372036854775807', '-9223372036854775808', '9007199254740993', '-0', '7', '1.0'];
    const uint64 = [['18446744073709551615'], ['9007199254740993']];
    const body = `{
      "inputs": [
        {"name": "int64", "datatype": "INT64", "shape": [2, 3], "data": [${int64}]},
        {"name": "uint64", "datatype": "UINT64", "shape": [2, 1], "data": ${JSON.stringify(uint64).replaceAll('"', '')}}
      ],
      "outputs": [{"name": "int64_out"}, {"name": "uint64_out"}]
    }`;
    const response = await fetch(url(every.name), { method: 'POST', body: Buffer.from(body) });
    const answer = await response.text();
    expect(answer).to.include('"data":[9223372036854775807,-9223372036854775808,9007199254740993,0,7,1]');
    expect(answer).to.include('"data":[18446744073709551615,9007199254740993]');
  });

  describe('without JSON', () => {
    it('take the whole body as the one text of a text model', async () => {
      const { json, bytes } = await postBinary(url(text.name), 'a whole sentence', 0);
      expect(json.outputs[0]).to.deep.include({ name: 'embedding', shape: [1, DIMENSIONS] });
      const floats = new Float32Array(new Uint8Array(bytes.embedding ?? []).buffer);
      expect([...floats]).to.deep.equal(embeddingOf('a whole sentence').map(Math.fround));
    });

    it('tell the one open dimension from the length of the body', async () => {
      const data = Buffer.from(new Float32Array([1, 2, 3, 4, 5, 6]).buffer);
      const { json, bytes } = await postBinary(url(vector.name), data, 0);
      expect(json.outputs[0]?.shape).to.deep.equal([1, 2, 3]);
      expect(bytes.x_out).to.deep.equal(data);
      const three = Buffer.from(new Int16Array([1, -2, 3]).buffer);
      expect((await postBinary(url(fixed.name), three, 0)).bytes.x_out).to.deep.equal(three);
    });

    it('put the length in front of a BYTES element', async () => {
      const { bytes } = await postBinary(url(word.name), 'é', 0);
      expect(bytes.x_out).to.deep.equal(Buffer.from(bytesTensor('', ['é']).data));
    });

    it('are refused where body and model do not say which tensor they are', async () => {
      const refused: [string, Uint8Array, string][] = [
        [every.name, Buffer.alloc(8), `has ${DATATYPES.length} inputs`],
        [vague.name, Buffer.alloc(8), 'has 2 dimensions of any size'],
        [vector.name, Buffer.alloc(12), 'body has 12 bytes'],
        [fixed.name, Buffer.alloc(5), 'body has 5 bytes'],
        [fixed.name, Buffer.alloc(0), 'body has 0 bytes'],
        [text.name, Buffer.alloc(0), 'body.data[0] must not be empty'],
        [text.name, Buffer.from([0xff, 0xfe]), 'body.data[0] is not valid UTF-8'],
      ];
      for (const [name, body, message] of refused) {
        const { status, json } = await postBinary(url(name), body, 0);
        expect(status).to.equal(400);
        expect(json.error).to.include(message);
      }
    });
  });

  it('takes a body without a type, as widespread clients send it, but not from a browser', async () => {
    const body = Buffer.from(
      JSON.stringify({ inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] }] }),
    );
    expect((await fetch(url(text.name), { method: 'POST', body })).status).to.equal(200);
    const headers = { origin: 'http://elsewhere.example' };
    expect((await fetch(url(text.name), { method: 'POST', body, headers })).status).to.equal(415);
  });

  it('echoes an id of any bytes inside the JSON', async () => {
    for (const id of ['\r\nSet-Cookie: x', '\0', '"', '😀', '\ud800', 'x'.repeat(100_000), '']) {
      const tensor = tensorOf('UINT8');
      const inputs = [binaryInput(tensor)];
      const parameters = { binary_data_output: true };
      const answer = await ask(every.name, { id, inputs, parameters }, [tensor.data]);
      expect(answer.status).to.equal(200);
      expect(answer.json.id).to.equal(id);
      expect([...answer.headers.values()].join()).not.to.include('Set-Cookie');
    }
  });

  it('replays an answer in bytes under its Idempotency-Key, header and all', async () => {
    const tensor = tensorOf('FP32');
    const { body, jsonLength } = binaryBody(
      { inputs: [binaryInput(tensor)], parameters: { binary_data_output: true } },
      [tensor.data],
    );
    const key = { 'idempotency-key': uniqueName('key') };
    const answered = everyWorker.answered.length;
    const first = await postBinary(url(every.name), body, jsonLength, key);
    const second = await postBinary(url(every.name), body, jsonLength, key);
    expect(second.headers.get('idempotency-replayed')).to.equal('true');
    expect(second.bytes).to.deep.equal(first.bytes);
    expect(second.bytes.fp32_out).to.deep.equal(Buffer.from(tensor.data));
    expect(everyWorker.answered).to.have.length(answered + 1);
  });

  it('lets the jobs of a queue wait in the order of their classes, whenever they came', async () => {
    const model = textModel(uniqueName('waiting'));
    const idle = new StandInWorker(model);
    await idle.announce();
    harness.onRelease(() => idle.stop());
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    const other = await harness.gateway({ models: [model.name], waitMs: 20_000 });
    const waiting = () => redis.zrange(`${BULL_PREFIX}:${idle.queue}:prioritized`, '0', '-1');
    const inputs = [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] }];
    const aborted = new AbortController();
    const asked = [3, 2, 1, 3, 0, 2].map(async (priority, count) => {
      // One after the other, as the order within a class is that of coming.
      await until('those before it wait', async () => (await waiting()).length === count);
      return await fetch(`${other.url}/v2/models/${model.name}/infer`, {
        method: 'POST',
        signal: aborted.signal,
        body: Buffer.from(JSON.stringify({ id: String(count), inputs, parameters: { priority, count } })),
      });
    });
    await until('all wait', async () => (await waiting()).length === asked.length);
    const order = await Promise.all(
      (await waiting()).map(async (id) => {
        const data = await redis.hget(`${BULL_PREFIX}:${idle.queue}:${id}`, 'data');
        return JSON.parse(data ?? '').parts[0].parameters.count;
      }),
    );
    expect(order).to.deep.equal([2, 4, 1, 5, 0, 3]);
    aborted.abort();
    await Promise.allSettled(asked);
  });

  it('passes priority on as a class and timeout as a deadline, and neither to the model', async () => {
    const inputs = [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] }];
    const model = textModel(uniqueName('scheduled'));
    const worker = await harness.worker(model);
    const other = await harness.gateway({ models: [model.name], maxWaitMs: 20_000 });
    const parametersOf = async (parameters: object) => {
      const answer = await post(`${other.url}/v2/models/${model.name}/infer`, { inputs, parameters });
      expect(answer.status).to.equal(200);
      return worker.answered.at(-1);
    };
    for (const [priority, expected] of [
      [undefined, PRIORITIES.interactive],
      [0, PRIORITIES.interactive],
      [1, PRIORITIES.interactive],
      [2, PRIORITIES.normal],
      [3, PRIORITIES.bulk],
    ]) {
      const part = await parametersOf({ priority, timeout: 5_000_000, other: true });
      expect(part?.priority).to.equal(expected);
      expect(part?.parameters).to.deep.equal({ other: true });
      expect((part?.deadlineAt ?? 0) - (part?.stamps.received ?? 0)).to.be.closeTo(5000, 0.01);
    }
    const clamped = await parametersOf({ timeout: 1e15 });
    expect((clamped?.deadlineAt ?? 0) - (clamped?.stamps.received ?? 0)).to.be.closeTo(20_000, 0.01);
  });
});
