import { expect } from 'chai';
import { type HttpAnswer, httpDoor, json } from '../http-door.js';

export const nativeDoor = httpDoor({
  name: 'native',
  path: (model) => `/v1/models/${model}/predict`,
  contentType: 'application/json',
  body: (_model, texts, { waitMs } = {}) => ({
    bytes: json({ inputs: texts, ...(waitMs === undefined ? {} : { waitMs }) }),
  }),
  read: (body) => ({ vectors: (JSON.parse(body.toString()) as { outputs: number[][] }).outputs }),
  messageOf: ({ detail }) => detail,
  fieldOf: (index) => `inputs[${index}]`,
  /** Problem details, RFC 9457. */
  requireRefusalForm({ raw, status }) {
    const { headers, refusal } = raw as HttpAnswer;
    expect(headers.get('content-type')).to.equal('application/problem+json');
    expect(refusal).to.include({ status, requestId: headers.get('x-request-id') });
    expect(refusal.type).to.equal(`urn:millrace:error:${refusal.code}`);
    expect(refusal.title).to.be.a('string');
    expect(refusal.detail).to.be.a('string');
  },
  lacks: { clientId: 'the request is named by `X-Request-Id` alone' },
});
