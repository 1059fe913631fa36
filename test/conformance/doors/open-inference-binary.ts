import { httpDoor, json, rowsOf } from '../http-door.js';
import { bytesElements, floatsOf } from '../raw-tensors.js';
import { openInferenceJsonDoor } from './open-inference-json.js';

interface Inference {
  id?: string;
  outputs: { datatype: string; shape: number[]; parameters: { binary_data_size: number } }[];
}

const LENGTH = 'inference-header-content-length';

/** The binary tensor extension both ways: JSON, then the tensors' bytes in listed order. */
export const openInferenceBinaryDoor = httpDoor({
  name: 'Open Inference, binary',
  path: (model) => `/v2/models/${model}/infer`,
  contentType: 'application/octet-stream',
  body(_model, texts, { id, waitMs } = {}) {
    const data = bytesElements(texts);
    const head = json({
      ...(id === undefined ? {} : { id }),
      parameters: {
        binary_data_output: true,
        ...(waitMs === undefined ? {} : { timeout: waitMs * 1000 }),
      },
      inputs: [
        {
          name: 'text',
          datatype: 'BYTES',
          shape: [texts.length],
          parameters: { binary_data_size: data.byteLength },
        },
      ],
    });
    return { bytes: Buffer.concat([head, data]), headers: { [LENGTH]: String(head.byteLength) } };
  },
  read(body, headers) {
    let at = Number(headers.get(LENGTH));
    const { id, outputs } = JSON.parse(body.toString('utf8', 0, at)) as Inference;
    const vectors = outputs.flatMap(({ shape, parameters }) => {
      const bytes = body.subarray(at, at + parameters.binary_data_size);
      at += bytes.byteLength;
      return rowsOf(floatsOf(bytes), shape);
    });
    return { id, vectors };
  },
  messageOf: ({ error }) => error,
  fieldOf: (index) => `inputs[0].data[${index}]`,
  noText: Buffer.from([0xff, 0xfe]),
  requireRefusalForm: (answer) => openInferenceJsonDoor.requireRefusalForm(answer),
});
