import { decodeReply, type Reply, readReplies, replyChannel, replyKey } from '@millrace/shared';
import { expect } from 'chai';
import { uniqueName, until, useRedis } from '../test-support/redis.js';
import { ReplyPublisher } from './reply-publisher.js';

function reply(requestId: string, generation: number, worker: string, bytes = 8): Reply {
  const data = new Uint8Array(bytes);
  return {
    header: {
      v: 1,
      requestId,
      firstItem: 0,
      generation,
      items: [{ status: 'ok' }],
      worker,
      model: 'm',
      version: '1',
      attempt: 1,
      batches: [],
      stamps: {},
    },
    outputs: [{ name: 'o', datatype: 'UINT8', shape: [1, bytes], data }],
  };
}

describe('the reply publisher', () => {
  const redis = useRedis();

  async function setUp() {
    const gateway = uniqueName('gateway');
    const subscriber = await redis.connect('subscriber');
    await subscriber.subscribe(replyChannel(gateway));
    const messages: Buffer[] = [];
    subscriber.on('messageBuffer', (_channel: Buffer, message: Buffer) => messages.push(message));
    const connection = await redis.connect();
    const publisher = new ReplyPublisher(connection);
    return { publisher, connection, messages, address: { queue: '{t@1}', gateway, ttlMs: 5000 } };
  }

  it('stores and publishes the first reply only, whoever comes second', async () => {
    const { publisher, connection, messages, address } = await setUp();
    const id = uniqueName('request');
    const won = await Promise.all([
      publisher.publish(reply(id, 0, 'first'), address),
      publisher.publish(reply(id, 0, 'second'), address),
    ]);
    expect(won).to.deep.equal([true, false]);
    await publisher.publish(reply(uniqueName('last'), 0, 'other'), address);
    await until(() => messages.length >= 2);
    expect(messages.flatMap(readReplies)).to.have.length(2);
    const stored = await connection.getBuffer(replyKey(address.queue, id, 0));
    expect(decodeReply(stored ?? Buffer.alloc(0)).header.worker).to.equal('first');
  });

  it('lets only a higher generation replace a stored reply', async () => {
    const { publisher, connection, address } = await setUp();
    const id = uniqueName('request');
    const outcomes = [];
    for (const generation of [1, 1, 0, 2]) {
      outcomes.push(await publisher.publish(reply(id, generation, `g${generation}`), address));
    }
    expect(outcomes).to.deep.equal([true, false, false, true]);
    const stored = await connection.getBuffer(replyKey(address.queue, id, 0));
    expect(decodeReply(stored ?? Buffer.alloc(0)).header.worker).to.equal('g2');
  });

  it('gives a stored reply the time to live it was told', async () => {
    const { publisher, connection, address } = await setUp();
    const id = uniqueName('request');
    await publisher.publish(reply(id, 0, 'w'), address);
    expect(await connection.pttl(replyKey(address.queue, id, 0))).to.be.within(1, 5000);
  });

  it('publishes only the address of a large reply', async () => {
    const { publisher, messages, address } = await setUp();
    const id = uniqueName('request');
    await publisher.publish(reply(id, 0, 'w', 100_000), address);
    await until(() => messages.length > 0);
    expect(messages.flatMap(readReplies)).to.deep.equal([{ requestId: id, firstItem: 0 }]);
  });

  it('sends what became ready together in one message, whatever came before for some of it', async () => {
    const { publisher, messages, address } = await setUp();
    const ids = Array.from({ length: 10 }, () => uniqueName('request'));
    await publisher.publish(reply(ids[3] ?? '', 0, 'earlier'), address);
    const won = await Promise.all(ids.map((id) => publisher.publish(reply(id, 0, 'together'), address)));
    expect(won.filter((one) => !one)).to.have.length(1);
    await until(() => messages.length === 2);
    const together = readReplies(messages[1] ?? Buffer.alloc(0)).map((one) =>
      'stored' in one ? decodeReply(one.stored).header.requestId : '',
    );
    expect(together).to.deep.equal(ids.filter((_, i) => i !== 3));
  });

  it('goes on after Redis forgot its script', async () => {
    const { publisher, connection, address } = await setUp();
    await publisher.publish(reply(uniqueName('request'), 0, 'w'), address);
    await connection.script('FLUSH');
    expect(await publisher.publish(reply(uniqueName('request'), 0, 'w'), address)).to.equal(true);
  });
});
