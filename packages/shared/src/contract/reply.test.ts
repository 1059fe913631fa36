import { expect } from 'chai';
import {
  decodeReply,
  decodeReplyHeader,
  encodeReply,
  packReplies,
  publishedReply,
  type Reply,
  readReplies,
} from './reply.js';
import { bytesTensor } from './tensor.js';

function reply(size: number, generation = 0): Reply {
  return {
    header: {
      v: 1,
      requestId: 'r-1',
      firstItem: 32,
      generation,
      items: [
        { status: 'ok', tokens: 5 },
        { status: 'failed', code: 'text_too_long', message: 'too long' },
      ],
      worker: 'w',
      model: 'm',
      version: '1',
      attempt: 1,
      batches: ['b'],
      stamps: { replied: 2.5 },
    },
    outputs: [bytesTensor('out', ['x'.repeat(size)])],
  };
}

describe('a reply', () => {
  it('comes back as it went, its generation in the first four bytes', () => {
    const stored = encodeReply(reply(10, 258));
    expect(stored.readUInt32LE(0)).to.equal(258);
    const { header, outputs } = decodeReply(stored);
    expect(header).to.deep.equal(reply(10, 258).header);
    expect(Buffer.from(outputs[0]?.data.subarray(4) ?? []).toString()).to.equal('x'.repeat(10));
  });

  it('tells of its items by its first bytes', () => {
    const start = encodeReply(reply(100_000)).subarray(0, 4096);
    expect(decodeReplyHeader(start).items).to.deep.equal(reply(0).header.items);
    expect(() => decodeReply(start)).to.throw();
    for (const bytes of [0, 3, 11, 40]) expect(() => decodeReplyHeader(start.subarray(0, bytes))).to.throw();
  });

  it('is published whole when small and by its address when large, several in one message', () => {
    const small = encodeReply(reply(10));
    const large = encodeReply(reply(100_000));
    const published = [
      publishedReply(small, { requestId: 'r-1', firstItem: 32 }, 'gateway'),
      publishedReply(large, { requestId: 'r-2', firstItem: 64 }, 'gateway'),
    ];
    expect(readReplies(packReplies(published))).to.deep.equal([
      { stored: small },
      { requestId: 'r-2', firstItem: 64 },
    ]);
  });

  it('that is cut short in its message is left out, the ones before it are not', () => {
    const small = encodeReply(reply(10));
    const message = packReplies([small, small]);
    for (const end of [message.byteLength - 1, small.byteLength + 6, small.byteLength + 4]) {
      expect(readReplies(message.subarray(0, end))).to.deep.equal([{ stored: small }]);
    }
    expect(readReplies(Buffer.alloc(0))).to.deep.equal([]);
  });

  it('of another contract version is refused by name', () => {
    const other = reply(1);
    other.header.v = 2;
    expect(() => decodeReply(encodeReply(other)))
      .to.throw()
      .with.property('code', 'contract_version_unsupported');
  });

  it('with an unknown error code, an unknown status or a hole among its items is refused', () => {
    for (const item of [{ status: 'failed', code: 'no_such_code' }, { status: 'fine' }, null]) {
      const bad = reply(1);
      bad.header.items[1] = item as never;
      expect(() => decodeReply(encodeReply(bad))).to.throw(/not valid/);
    }
  });
});
