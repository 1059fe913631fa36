import type { BytesBody } from '../load/messages.js';

/** A tensor and its data as binary protocols carry it: little-endian, row-major. */
export interface WireTensor {
  name: string;
  datatype: string;
  shape: readonly number[];
  data: Buffer;
}

/** A BYTES tensor: of each text its length, then its bytes. */
export function textTensor(text: string): WireTensor {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.byteLength);
  return { name: 'text', datatype: 'BYTES', shape: [1], data: Buffer.concat([length, bytes]) };
}

export function floatTensor(name: string, values: readonly number[]): WireTensor {
  const data = Buffer.from(new Float32Array(values).buffer);
  return { name, datatype: 'FP32', shape: [1, values.length], data };
}

/** An infer request of the binary tensor extension, its answer asked for in binary too. */
export function binaryInfer({ name, datatype, shape, data }: WireTensor): BytesBody {
  const parameters = { binary_data_size: data.byteLength };
  const head = Buffer.from(
    JSON.stringify({
      parameters: { binary_data_output: true },
      inputs: [{ name, datatype, shape, parameters }],
    }),
  );
  return {
    base64: Buffer.concat([head, data]).toString('base64'),
    headers: {
      'Content-Type': 'application/octet-stream',
      'Inference-Header-Content-Length': String(head.byteLength),
    },
  };
}

/** A ModelInferRequest with its tensor raw, by hand: the generator sends bytes. */
export function grpcInfer(model: string, { name, datatype, shape, data }: WireTensor): BytesBody {
  const input = Buffer.concat([
    field(1, Buffer.from(name)),
    field(2, Buffer.from(datatype)),
    field(3, Buffer.concat(shape.map(varint))),
  ]);
  const message = Buffer.concat([field(1, Buffer.from(model)), field(5, input), field(7, data)]);
  return { base64: message.toString('base64') };
}

/** A protobuf field of a length and bytes. */
function field(number: number, bytes: Buffer): Buffer {
  const lengthDelimited = 2;
  return Buffer.concat([varint(number * 8 + lengthDelimited), varint(bytes.byteLength), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Buffer.from([...bytes, left]);
}
