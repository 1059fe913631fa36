import type { Tensor } from '@millrace/shared';
import { expect } from 'chai';

/** An answer of the Open Inference door with its binary outputs read. */
export interface BinaryAnswer {
  status: number;
  headers: Headers;
  json: {
    id?: string;
    error?: string;
    outputs: {
      name: string;
      shape: number[];
      datatype: string;
      data?: unknown[];
      parameters?: { binary_data_size: number };
    }[];
  };
  /** Bytes of the binary outputs, by name. */
  bytes: Record<string, Buffer>;
}

/** JSON with the data of tensors behind it, as the binary extension has it. */
export function binaryBody(
  json: object,
  tensors: readonly Uint8Array[],
): { body: Buffer; jsonLength: number } {
  const text = Buffer.from(JSON.stringify(json));
  return { body: Buffer.concat([text, ...tensors]), jsonLength: text.byteLength };
}

/** The entry of a tensor whose data lies behind the JSON. */
export function binaryInput({ name, datatype, shape, data }: Tensor): object {
  return { name, datatype, shape, parameters: { binary_data_size: data.byteLength } };
}

/** Posts a body; `jsonLength` absent: it is JSON alone. */
export async function postBinary(
  url: string,
  body: Uint8Array | string,
  jsonLength?: number | string,
  headers: Record<string, string> = {},
): Promise<BinaryAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/octet-stream',
      ...headers,
      ...(jsonLength === undefined ? {} : { 'inference-header-content-length': String(jsonLength) }),
    },
    body: body as Uint8Array<ArrayBuffer>,
  });
  const answer = Buffer.from(await response.arrayBuffer());
  const length = response.headers.get('inference-header-content-length');
  const json = JSON.parse(answer.toString('utf8', 0, length === null ? undefined : Number(length)));
  const bytes: Record<string, Buffer> = {};
  let at = length === null ? answer.byteLength : Number(length);
  for (const { name, parameters } of json.outputs ?? []) {
    if (!parameters) continue;
    bytes[name] = answer.subarray(at, at + parameters.binary_data_size);
    at += parameters.binary_data_size;
  }
  expect(at, 'the answer ends with its last tensor').to.equal(answer.byteLength);
  return { status: response.status, headers: response.headers, json, bytes };
}
