import { seeded } from '#test/support/random.js';

/** Nothing is measured by whether a busy machine is in time, in microseconds. */
const TIMEOUT = 60_000_000;

/** A request of one FP32 tensor to the identity model, and what of the tensor it carries. */
export interface TensorRequest {
  body: Buffer;
  /** Of the JSON in front of the bytes; absent: JSON alone. */
  jsonLength?: number;
  values: Float32Array;
}

/** Floats such as models give: between -1 and 1, with all the digits of FP32. */
export function randomFloats(count: number): Float32Array {
  const random = seeded(count);
  return Float32Array.from({ length: count }, () => random() * 2 - 1);
}

/** A tensor of one item, as bytes behind the JSON; the answer is asked for in bytes too. */
export function binaryRequest(values: Float32Array): TensorRequest {
  const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const head = Buffer.from(
    JSON.stringify({
      inputs: [{ ...inputOf(values), parameters: { binary_data_size: data.byteLength } }],
      parameters: { binary_data_output: true, timeout: TIMEOUT },
    }),
  );
  return { body: Buffer.concat([head, data]), jsonLength: head.byteLength, values };
}

/** The same in JSON, both ways, cut into requests of at most so many values. */
export function jsonRequests(values: Float32Array, mostValues: number): TensorRequest[] {
  const requests: TensorRequest[] = [];
  for (let at = 0; at < values.length; at += mostValues) {
    const part = values.subarray(at, at + mostValues);
    const input = { ...inputOf(part), data: [...part] };
    requests.push({
      body: Buffer.from(JSON.stringify({ inputs: [input], parameters: { timeout: TIMEOUT } })),
      values: part,
    });
  }
  return requests;
}

/** Whether an answer holds the values that were sent, bit by bit. */
export function givesBack({ values }: TensorRequest, answer: { jsonLength: number; body: Buffer }): boolean {
  if (answer.jsonLength > 0) {
    const sent = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    return answer.body.subarray(answer.jsonLength).equals(sent);
  }
  const { outputs } = JSON.parse(answer.body.toString()) as { outputs: { data: number[] }[] };
  const data = outputs[0]?.data ?? [];
  return data.length === values.length && values.every((value, i) => value === data[i]);
}

function inputOf(values: Float32Array): object {
  return { name: 'fp32', datatype: 'FP32', shape: [1, values.length] };
}
