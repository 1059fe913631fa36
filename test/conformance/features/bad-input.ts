import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Answered, Door, HttpForm, Target } from '../door.js';
import type { Feature } from '../feature.js';
import { requireRefusal } from '../refusal.js';
import { BROKEN, MAX_BODY_BYTES, MAX_REQUEST_ITEMS, TOO_LONG } from '../stage.js';

/** The form of a door over HTTP; features without one are never run. */
function httpOf({ http, name }: Door): HttpForm {
  if (!http) throw new Error(`${name} speaks no HTTP`);
  return http;
}

/** Sends a whole body that the door would take, changed. */
function sendBody(
  door: Door,
  to: Target,
  change: (bytes: Buffer) => Buffer,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const http = httpOf(door);
  const right = http.body(to.model, ['a']);
  const body = change(right.bytes);
  return http.send(to, { body, headers: { 'content-type': http.contentType, ...right.headers, ...headers } });
}

export const BAD_INPUT: readonly Feature[] = [
  {
    key: 'emptyList',
    does: 'refuses an empty list',
    async run(door, { served }) {
      requireRefusal(door, await door.ask(served, []), 'invalid_input', 'an empty list');
    },
  },
  {
    key: 'emptyText',
    does: 'refuses an empty text, naming it',
    async run(door, { served }) {
      const answer = await door.ask(served, ['a', '', 'c']);
      requireRefusal(door, answer, 'invalid_input', 'an empty text');
      expect(answer.message).to.include(door.fieldOf(1));
    },
  },
  {
    key: 'noText',
    does: 'refuses what is no text, naming it',
    async run(door, { served }) {
      const answer = await door.ask(served, ['a', 'b', door.noText]);
      requireRefusal(door, answer, 'invalid_input', 'no text');
      expect(answer.message).to.include(door.fieldOf(2));
    },
  },
  {
    key: 'tooManyItems',
    does: 'refuses more items than the model takes',
    async run(door, { served }) {
      const answer = await door.ask(served, Array(MAX_REQUEST_ITEMS + 1).fill('a'));
      requireRefusal(door, answer, 'too_many_items', 'too many items');
      expect(answer.message).to.include(String(MAX_REQUEST_ITEMS));
    },
  },
  {
    key: 'failingItem',
    does: 'fails as a whole when an item fails, naming it',
    async run(door, { served }) {
      const answer = await door.ask(served, ['a', 'b', TOO_LONG]);
      requireRefusal(door, answer, 'text_too_long', 'a text that is too long');
      expect(answer.message).to.match(/\b2\b/);
      expect(answer.vectors).to.deep.equal([]);
    },
  },
  {
    key: 'inferenceFails',
    does: 'says so when the model fails',
    async run(door, { served }) {
      const answer = await door.ask(served, ['a', BROKEN]);
      requireRefusal(door, answer, 'inference_failed', 'the model fails');
    },
  },
  {
    key: 'unknownModel',
    does: 'refuses an unknown model, naming those there are',
    async run(door, { served, unknown }) {
      const answer = await door.ask(unknown, ['a']);
      requireRefusal(door, answer, 'model_not_found', 'an unknown model');
      expect(answer.message).to.include(served.model);
    },
  },
  {
    key: 'bodyTooLarge',
    does: 'refuses a body that is too large',
    async run(door, { served }) {
      const answer = await door.ask(served, ['x'.repeat(MAX_BODY_BYTES + 1)]);
      requireRefusal(door, answer, 'body_too_large', 'a body that is too large');
    },
  },
  {
    key: 'notJson',
    does: 'refuses a body that is cut off',
    overHttp: true,
    async run(door, { served }) {
      const answer = await sendBody(door, served, (bytes) => bytes.subarray(0, 9));
      requireRefusal(door, answer, 'invalid_json', 'a body that is cut off');
    },
  },
  {
    key: 'notUtf8',
    does: 'refuses JSON that is not UTF-8',
    overHttp: true,
    async run(door, { served }) {
      // The first quote's neighbour becomes a byte that UTF-8 never has.
      const answer = await sendBody(door, served, (bytes) => {
        const broken = Buffer.from(bytes);
        broken[broken.indexOf('"') + 1] = 0xff;
        return broken;
      });
      requireRefusal(door, answer, 'invalid_encoding', 'no UTF-8');
    },
  },
  {
    key: 'contentType',
    does: 'refuses another content type',
    overHttp: true,
    async run(door, { served }) {
      const answer = await sendBody(door, served, (bytes) => bytes, { 'content-type': 'text/plain' });
      requireRefusal(door, answer, 'unsupported_media_type', 'another content type');
    },
  },
  {
    key: 'contentEncoding',
    does: 'refuses a content encoding that it does not know',
    overHttp: true,
    async run(door, { served }) {
      const answer = await sendBody(door, served, (bytes) => bytes, { 'content-encoding': 'lzma' });
      requireRefusal(door, answer, 'unsupported_media_type', 'an unknown encoding');
    },
  },
  {
    key: 'zipBomb',
    does: 'refuses a small body that unpacks to a large one',
    overHttp: true,
    async run(door, { served }) {
      const http = httpOf(door);
      const { bytes, headers } = http.body(served.model, ['x'.repeat(100 * MAX_BODY_BYTES)]);
      const body = gzipSync(bytes);
      expect(body.byteLength).to.be.below(MAX_BODY_BYTES);
      const answer = await http.send(served, {
        body,
        headers: { 'content-type': http.contentType, 'content-encoding': 'gzip', ...headers },
      });
      requireRefusal(door, answer, 'body_too_large', 'a zip bomb');
    },
  },
  {
    key: 'method',
    does: 'answers another method 405, with those allowed',
    overHttp: true,
    async run(door, { served }) {
      const answer = await httpOf(door).send(served, { method: 'PUT', headers: {} });
      requireRefusal(door, answer, 'method_not_allowed', 'another method');
      expect(answer.header('allow')).to.include('POST');
    },
  },
];
