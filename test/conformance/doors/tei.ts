import { expect } from 'chai';
import { type HttpAnswer, httpDoor, json } from '../http-door.js';

/** The protocol's own statuses: what it calls validation, and a model that failed. */
export const teiDoor = httpDoor({
  name: 'text-embeddings-inference',
  path: (model) => `/models/${model}/embed`,
  contentType: 'application/json',
  body: (texts, { waitMs } = {}) => ({
    // The protocol has no word of its own for how long to wait.
    ...(waitMs === undefined ? {} : { headers: { prefer: `wait=${Math.ceil(waitMs / 1000)}` } }),
    // Scaled to length 1, by its default, they would not be the native door's.
    bytes: json({ inputs: texts, normalize: false }),
  }),
  read: (body) => ({ vectors: JSON.parse(body.toString()) as number[][] }),
  messageOf: ({ error }) => error,
  fieldOf: (index) => `inputs[${index}]`,
  statuses: { invalid_input: 413, too_many_items: 413, text_too_long: 413, inference_failed: 424 },
  otherClass: ['inference_failed'],
  requireRefusalForm({ raw }) {
    const { headers, refusal } = raw as HttpAnswer;
    expect(headers.get('content-type')).to.equal('application/json');
    expect(Object.keys(refusal)).to.deep.equal(['error', 'error_type']);
    expect(refusal.error_type).to.match(/^(Validation|Tokenizer|Backend|Overloaded|Unhealthy)$/);
  },
  lacks: { clientId: 'the request is named by `X-Request-Id` alone' },
});
