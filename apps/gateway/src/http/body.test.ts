import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { BodyBytes, readBody } from './body.js';

const MOST = 1 << 20;

/** A request whose body comes in chunks, and that announces `length` bytes. */
function requestOf(length?: number) {
  const stream = new PassThrough();
  return Object.assign(stream, {
    headers: length === undefined ? {} : { 'content-length': String(length) },
  }) as unknown as PassThrough & IncomingMessage;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('reading a body', () => {
  it('gives back what came, in one chunk or many, announced rightly, wrongly or not', async () => {
    const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
    for (const length of [1000, 2000, undefined]) {
      for (const size of [1000, 300, 7]) {
        const req = requestOf(length);
        const body = readBody(req, MOST);
        for (let at = 0; at < 1000; at += size) {
          req.write(bytes.subarray(at, at + size));
          await turn();
        }
        req.end();
        expect(await body).to.deep.equal(bytes);
      }
    }
  });

  it('counts what is held: what has come, and all that was announced once a quarter of it is there', async () => {
    const all = new BodyBytes(MOST);
    const req = requestOf(1000);
    const body = readBody(req, MOST, all);
    const held: number[] = [];
    for (const size of [100, 100, 100, 700]) {
      req.write(Buffer.alloc(size));
      await turn();
      held.push(all.held);
    }
    expect(held).to.deep.equal([100, 200, 1000, 1000]);
    req.end();
    expect((await body).byteLength).to.equal(1000);
    expect(all.held).to.equal(0);
  });

  it('refuses what is more than all may hold together, and lets go of it', async () => {
    const all = new BodyBytes(1500);
    const [first, second] = [requestOf(1000), requestOf(1000)];
    const kept = readBody(first, MOST, all);
    const refused = readBody(second, MOST, all).catch((error) => error);
    for (const req of [first, second]) {
      for (let i = 0; i < 3; i++) {
        req.write(Buffer.alloc(300));
        await turn();
      }
    }
    expect(await refused).to.include({ code: 'queue_full' });
    expect(all.held).to.equal(1000);
    first.end(Buffer.alloc(100));
    expect((await kept).byteLength).to.equal(1000);
    expect(all.held).to.equal(0);
  });
});
