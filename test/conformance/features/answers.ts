import { randomUUID } from 'node:crypto';
import { deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { embeddingOf } from '#gateway/test-support/stand-in-worker.js';
import type { Answered } from '../door.js';
import { nativeDoor } from '../doors/native.js';
import type { Feature } from '../feature.js';
import { requireRefusal } from '../refusal.js';
import { MAX_JOB_ITEMS } from '../stage.js';

/** Of a number around 1; the stand-in's vectors are no unit vectors. */
const SAME = 1e-6;
const tolerance = (x: number): number => SAME * Math.max(1, Math.abs(x));
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** No header may carry these as they are, no JSON string may drop them. */
const ODD_ID = 'mine "\\ \u0000\r\nX-Evil: 1 é 🐸';

function requireVectors({ status, vectors, message }: Answered, texts: readonly string[]): void {
  expect(status, message).to.equal(200);
  expect(vectors).to.have.length(texts.length);
  for (const [i, text] of texts.entries()) {
    const right = embeddingOf(text);
    expect(vectors[i], `vector ${i}`).to.have.length(right.length);
    for (const [k, x] of right.entries())
      expect(vectors[i]?.[k], `${i}, ${k}`).to.be.closeTo(x, tolerance(x));
  }
}

const sentences = (count: number): string[] => Array.from({ length: count }, (_, i) => `sentence ${i}`);

export const ANSWERS: readonly Feature[] = [
  {
    key: 'oneText',
    does: 'answers one text with its vector',
    async run(door, { served }) {
      requireVectors(await door.ask(served, ['hello']), ['hello']);
    },
  },
  {
    key: 'list',
    does: 'answers a list in its order',
    async run(door, { served }) {
      const texts = ['c', 'a', 'b', 'a'];
      requireVectors(await door.ask(served, texts), texts);
    },
  },
  {
    key: 'manyJobs',
    does: 'answers 100 texts that travel in several jobs, in order',
    async run(door, stage) {
      const before = stage.partsAnswered;
      const texts = sentences(100);
      requireVectors(await door.ask(stage.served, texts), texts);
      expect(stage.partsAnswered - before).to.equal(Math.ceil(100 / MAX_JOB_ITEMS));
    },
  },
  {
    key: 'asNative',
    does: 'gives the same vectors as the native door, to 1e-6',
    async run(door, { served }) {
      const texts = sentences(20);
      const [own, native] = await Promise.all([door.ask(served, texts), nativeDoor.ask(served, texts)]);
      requireVectors(own, texts);
      for (const [i, vector] of native.vectors.entries()) {
        for (const [k, x] of vector.entries()) expect(own.vectors[i]?.[k]).to.be.closeTo(x, tolerance(x));
      }
    },
  },
  {
    key: 'unicode',
    does: 'carries any Unicode, NUL included',
    async run(door, { served }) {
      const texts = ['жаба 🐸 蛙', 'a\u0000b', '\u0000', '\ufeffx', '"\\\n\t'];
      requireVectors(await door.ask(served, texts), texts);
    },
  },
  {
    key: 'largeText',
    does: 'carries a text that is too large to travel in its job',
    async run(door, { served }) {
      const texts = ['y'.repeat(50_000), 'short'];
      requireVectors(await door.ask(served, texts), texts);
    },
  },
  {
    key: 'atOnce',
    does: 'gives 50 clients at once each its own answer',
    async run(door, { served }) {
      const texts = sentences(50);
      const answers = await Promise.all(texts.map((text) => door.ask(served, [text])));
      for (const [i, answer] of answers.entries()) requireVectors(answer, texts.slice(i, i + 1));
    },
  },
  {
    key: 'gzip',
    does: 'takes bodies in gzip and deflate',
    overHttp: true,
    async run(door, { served }) {
      const { http } = door;
      if (!http) throw new Error(`${door.name} speaks no HTTP`);
      const texts = ['packed', 'y'.repeat(1000)];
      for (const [coding, pack] of [
        ['gzip', gzipSync],
        ['deflate', deflateSync],
      ] as const) {
        const { bytes, headers } = http.body(served.model, texts);
        const answer = await http.send(served, {
          headers: { 'content-type': http.contentType, 'content-encoding': coding, ...headers },
          body: pack(bytes),
        });
        requireVectors(answer, texts);
      }
    },
  },
  {
    key: 'requestId',
    does: 'names every request in its answer, each otherwise',
    async run(door, { served, unknown }) {
      const answers = [
        await door.ask(served, ['a']),
        await door.ask(served, ['a']),
        await door.ask(unknown, ['a']),
      ];
      const ids = answers.map((answer) => answer.header('x-request-id'));
      for (const id of ids) expect(id).to.match(UUID);
      expect(new Set(ids).size).to.equal(3);
    },
  },
  {
    key: 'clientId',
    does: "echoes the client's own id, whatever its bytes",
    async run(door, { served }) {
      const answer = await door.ask(served, ['a'], { id: ODD_ID });
      requireVectors(answer, ['a']);
      expect(answer.id).to.equal(ODD_ID);
      expect(answer.header('x-evil')).to.equal(undefined);
      expect(answer.header('x-request-id')).not.to.equal(ODD_ID);
    },
  },
  {
    key: 'clientRequestId',
    does: "says the client's X-Request-Id again, beside its own, where a header may carry it",
    async run(door, { served }) {
      const ask = (id: string) => door.ask(served, ['a'], { headers: { 'x-request-id': id } });
      const named = await ask('mine / 42');
      expect(named.header('x-request-id')).to.equal('mine / 42');
      expect(named.header('x-millrace-request-id')).to.match(UUID);
      // Libraries of gRPC send no such metadata.
      if (!door.http) return;
      const odd = await ask('\u00ff\u00e9');
      expect(odd.status).to.equal(200);
      expect(odd.header('x-request-id')).to.match(UUID);
    },
  },
  {
    key: 'traceContext',
    does: 'passes the trace context on',
    async run(door, stage) {
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const answer = await door.ask(stage.served, ['a'], { headers: { traceparent } });
      requireVectors(answer, ['a']);
      expect(stage.lastPart?.traceparent).to.equal(traceparent);
    },
  },
  {
    key: 'serverTiming',
    does: 'tells what each stage took, in Server-Timing',
    overHttp: true,
    async run(door, { served }) {
      const answer = await door.ask(served, ['a']);
      expect(answer.header('server-timing')).to.match(/queue;dur=[\d.]+, .*infer;dur=.*total;dur=/);
    },
  },
  {
    key: 'options',
    does: 'answers OPTIONS with the methods that it takes',
    overHttp: true,
    async run({ name, http }, { served }) {
      if (!http) throw new Error(`${name} speaks no HTTP`);
      const answer = await http.send(served, { method: 'OPTIONS', headers: {} });
      expect(answer.status).to.equal(204);
      expect(answer.header('allow')).to.include('POST');
    },
  },
  {
    key: 'idempotency',
    does: 'runs what is sent again under its Idempotency-Key only once',
    async run(door, stage) {
      const headers = { 'idempotency-key': randomUUID() };
      const before = stage.partsAnswered;
      const first = await door.ask(stage.served, ['once'], { headers });
      const again = await door.ask(stage.served, ['once'], { headers });
      requireVectors(first, ['once']);
      expect(again.vectors).to.deep.equal(first.vectors);
      expect(again.header('idempotency-replayed')).to.equal('true');
      expect(again.header('content-type')).to.equal(first.header('content-type'));
      expect(stage.partsAnswered - before).to.equal(1);
      const other = await door.ask(stage.served, ['another'], { headers });
      requireRefusal(door, other, 'idempotency_key_reused', 'an Idempotency-Key with another request');
    },
  },
];
