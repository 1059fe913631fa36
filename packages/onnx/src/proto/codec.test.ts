import { expect } from 'chai';
import { seededRandom } from '../runtime/random.js';
import { readModel, toBigInt, writeModel } from './codec.js';
import { ONNX_SCHEMA } from './schema.js';
import type { Int64, MessageName, ModelProto } from './types.js';

const random = seededRandom(11);

/** A message with every one of its fields set, nested messages down to a depth. */
function everything(name: MessageName, depth: number): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (const [field, spec] of Object.entries<string>(ONNX_SCHEMA[name])) {
    const type = spec.replace(/^\d+ /, '').replace(/\[.*\]$/, '');
    if (type in ONNX_SCHEMA && depth === 0) continue;
    const make = (): unknown =>
      type in ONNX_SCHEMA ? everything(type as MessageName, depth - 1) : scalar(type);
    message[field] = spec.endsWith(']') ? [make(), make()] : make();
  }
  return message;
}

function scalar(type: string): unknown {
  const value = Math.floor(random() * 1e6);
  if (type === 'string') return `text ${value} é`;
  if (type === 'bytes') return Buffer.from(`bytes ${value}`);
  if (type === 'float') return Math.fround(random());
  if (type === 'double') return random();
  if (type === 'int32') return value - 500_000;
  return { low: value, high: -value | 0, unsigned: type === 'uint64' };
}

/** A message as a plain object: without its class, and without the empty lists that reading adds. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const own = Object.entries(value).filter(([, field]) => !Array.isArray(field) || field.length > 0);
  return Object.fromEntries(own.map(([name, field]) => [name, plain(field)]));
}

/** A field of bytes that no schema knows. */
const stranger = Buffer.from([0xba, 0x3e, 3, 1, 2, 3]);

describe('ONNX files', () => {
  it('lose no field of any message in a round trip', () => {
    const model = everything('ModelProto', 5);
    const bytes = writeModel(model as ModelProto);
    const read = readModel(bytes);
    expect(plain(read)).to.deep.equal(plain(model));
    expect(Buffer.from(writeModel(read)).equals(bytes)).to.equal(true);
  });

  it('keep zeros and empty strings that were written', () => {
    const model: ModelProto = {
      ir_version: 0,
      producer_name: '',
      graph: { node: [{ attribute: [{ name: 'axis', i: 0, f: 0, type: 0, s: new Uint8Array(0) }] }] },
    };
    const read = readModel(writeModel(model));
    expect(plain(read)).to.have.all.keys('ir_version', 'producer_name', 'graph');
    expect(plain(read.graph?.node?.[0]?.attribute?.[0])).to.have.all.keys('name', 'i', 'f', 'type', 's');
  });

  it('keep fields that the schema does not know, on every level', () => {
    const inner = Buffer.concat([writeModel({ producer_name: 'x' }), stranger]);
    const graph = Buffer.concat([Buffer.from([0x3a, stranger.length]), stranger]);
    const read = readModel(Buffer.concat([inner, graph]));
    const again = Buffer.from(writeModel(read));
    expect(again.toString('hex')).to.equal(
      Buffer.concat([inner.subarray(0, 3), graph, stranger]).toString('hex'),
    );
  });

  it('keep 64-bit numbers exact', () => {
    const dims: Int64[] = [
      { low: -1, high: 0x7fffffff, unsigned: false },
      { low: 0, high: -0x80000000, unsigned: false },
      -1,
    ];
    const read = readModel(writeModel({ graph: { initializer: [{ dims }] } }));
    expect(read.graph?.initializer?.[0]?.dims?.map(toBigInt)).to.deep.equal([
      2n ** 63n - 1n,
      -(2n ** 63n),
      -1n,
    ]);
  });

  it('are read without copying their weights', () => {
    const bytes = writeModel({ graph: { initializer: [{ raw_data: new Uint8Array(1000).fill(7) }] } });
    const raw = readModel(bytes).graph?.initializer?.[0]?.raw_data;
    expect(raw).to.have.length(1000);
    expect(raw?.buffer).to.equal(bytes.buffer);
  });

  it('are refused when cut off anywhere or damaged', () => {
    const bytes = writeModel({ producer_name: 'millrace', graph: { name: 'g', node: [{ op_type: 'Add' }] } });
    // A cut between two fields leaves a shorter but valid message.
    const whole = new Set([0, 10, bytes.length]);
    for (let length = 0; length < bytes.length; length++) {
      if (whole.has(length)) continue;
      expect(() => readModel(bytes.subarray(0, length)), `${length} bytes`).to.throw(
        /not a readable ONNX file/,
      );
    }
    expect(() => readModel(Buffer.from([0x12, 2, 0xff, 0xfe]))).to.throw(/not a readable ONNX file/);
  });
});
