import { expect } from 'chai';
import type { Door } from '../door.js';
import { type HttpAnswer, httpDoor, json, preferWait } from '../http-door.js';
import { floatsOf } from '../raw-tensors.js';

interface Embeddings {
  object: string;
  data: { object: string; index: number; embedding: number[] | string }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

/** `POST /v1/embeddings`; the official clients ask for base64. */
const openaiDoor = (format: 'float' | 'base64'): Door =>
  httpDoor({
    name: `OpenAI, ${format}`,
    path: () => '/v1/embeddings',
    contentType: 'application/json',
    body: (model, texts, { waitMs } = {}) => ({
      bytes: json({ model, input: texts, encoding_format: format }),
      headers: preferWait({ waitMs }),
    }),
    read(body) {
      const { object, data, usage } = JSON.parse(body.toString()) as Embeddings;
      expect(object).to.equal('list');
      expect(data.map(({ index }) => index)).to.deep.equal(data.map((_, i) => i));
      expect(usage).to.have.all.keys('prompt_tokens', 'total_tokens');
      return { vectors: data.map(({ embedding }) => numbersOf(embedding, format)) };
    },
    messageOf: ({ error }) => (error as { message?: string } | undefined)?.message,
    fieldOf: (index) => `input[${index}]`,
    /** `{"error": {"message", "type", "param", "code"}}`. */
    requireRefusalForm({ raw }) {
      const { headers, refusal } = raw as HttpAnswer;
      expect(headers.get('content-type')).to.equal('application/json');
      expect(Object.keys(refusal)).to.deep.equal(['error']);
      const error = refusal.error as Record<string, unknown>;
      expect(error).to.have.all.keys('message', 'type', 'param', 'code');
      for (const name of ['message', 'type', 'code']) expect(error[name]).to.be.a('string');
      if (error.param !== null) expect(error.param).to.be.a('string');
    },
    lacks: { clientId: 'the request is named by `X-Request-Id` alone' },
  });

function numbersOf(embedding: number[] | string, format: 'float' | 'base64'): number[] {
  if (format === 'float') return embedding as number[];
  return floatsOf(Buffer.from(embedding as string, 'base64'));
}

export const openaiFloatDoor = openaiDoor('float');
export const openaiBase64Door = openaiDoor('base64');
