import { expect } from 'chai';
import type { Door } from '../door.js';
import { type HttpAnswer, httpDoor, json, preferWait } from '../http-door.js';

/** text-embeddings-inference's `/embed`, for a model by its name. */
const teiDoorWith = (options: { normalize?: boolean }): Door =>
  httpDoor({
    name: 'text-embeddings-inference',
    path: (model) => `/models/${model}/embed`,
    contentType: 'application/json',
    body: (_model, texts, { waitMs } = {}) => ({
      bytes: json({ inputs: texts, ...options }),
      headers: preferWait({ waitMs }),
    }),
    read: (body) => ({ vectors: JSON.parse(body.toString()) as number[][] }),
    messageOf: ({ error }) => error,
    fieldOf: (index) => `inputs[${index}]`,
    // What it calls validation, and a model that failed.
    statuses: { invalid_input: 413, too_many_items: 413, text_too_long: 413, inference_failed: 424 },
    otherClass: ['inference_failed'],
    /** `{"error": "<string>", "error_type": "<kind>"}`. */
    requireRefusalForm({ raw }) {
      const { headers, refusal } = raw as HttpAnswer;
      expect(headers.get('content-type')).to.equal('application/json');
      expect(refusal).to.have.all.keys('error', 'error_type');
      expect(refusal.error).to.be.a('string').with.length.above(0);
      expect(refusal.error_type).to.be.oneOf([
        'Validation',
        'Tokenizer',
        'Backend',
        'Overloaded',
        'Unhealthy',
      ]);
    },
    lacks: { clientId: 'the request is named by `X-Request-Id` alone' },
  });

/** For models whose vectors are no unit vectors, and shall come as they are. */
export const teiDoor = teiDoorWith({ normalize: false });
/** As its clients ask it. */
export const teiDefaultDoor = teiDoorWith({});
