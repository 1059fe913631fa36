import { expect } from 'chai';
import { type HttpAnswer, httpDoor, json, rowsOf } from '../http-door.js';

interface Inference {
  id?: string;
  outputs: { shape: number[]; data: number[] }[];
}

export const openInferenceJsonDoor = httpDoor({
  name: 'Open Inference, JSON',
  path: (model) => `/v2/models/${model}/infer`,
  contentType: 'application/json',
  body: (_model, texts, { id, waitMs } = {}) => ({
    bytes: json({
      ...(id === undefined ? {} : { id }),
      ...(waitMs === undefined ? {} : { parameters: { timeout: waitMs * 1000 } }),
      inputs: [{ name: 'text', datatype: 'BYTES', shape: [texts.length], data: texts }],
    }),
  }),
  read(body) {
    const { id, outputs } = JSON.parse(body.toString()) as Inference;
    return { id, vectors: outputs.flatMap(({ data, shape }) => rowsOf(data, shape)) };
  },
  messageOf: ({ error }) => error,
  fieldOf: (index) => `inputs[0].data[${index}]`,
  /** `{"error": "<string>"}` and nothing else. */
  requireRefusalForm({ raw }) {
    const { headers, refusal } = raw as HttpAnswer;
    expect(headers.get('content-type')).to.equal('application/json');
    expect(Object.keys(refusal)).to.deep.equal(['error']);
    expect(refusal.error).to.be.a('string').with.length.above(0);
  },
});
