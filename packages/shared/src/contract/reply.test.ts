import { expect } from 'chai';
import { decodeReply, encodeReply, type Reply, readReplyMessage, replyMessage } from './reply.js';
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

  it('is published whole when small and by its address when large', () => {
    const small = encodeReply(reply(10));
    expect(readReplyMessage(replyMessage(small, 'r-1', 32) as Buffer)).to.deep.equal({ stored: small });
    const large = replyMessage(encodeReply(reply(100_000)), 'r-1', 32);
    expect(large).to.equal('ref:r-1:32');
    expect(readReplyMessage(Buffer.from(large))).to.deep.equal({ requestId: 'r-1', firstItem: 32 });
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
