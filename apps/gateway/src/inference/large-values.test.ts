import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { testRedis } from '../test-support/redis.js';
import { readValue, writeValue } from './large-values.js';

const MIB = 1 << 20;

describe('values of many MB in Redis', () => {
  let redis: Redis;
  let key: string;
  before(() => {
    redis = testRedis();
  });
  beforeEach(() => {
    key = `large-${randomUUID()}`;
  });
  afterEach(() => redis.unlink(key));
  after(() => redis.disconnect());

  for (const bytes of [1, 5000, MIB - 1, MIB, MIB + 1, 2 * MIB, 7 * MIB + 12_345]) {
    it(`are written and read whole: ${bytes} bytes`, async () => {
      const whole = randomBytes(bytes);
      const head = Math.min(bytes, 100);
      const middle = Math.floor((head + bytes) / 2);
      const parts = [whole.subarray(0, head), whole.subarray(head, middle), whole.subarray(middle)];
      await writeValue(redis, key, parts, 60_000);
      expect(whole.equals((await redis.getBuffer(key)) ?? Buffer.alloc(0))).to.equal(true);
      expect(whole.equals((await readValue(redis, key)) ?? Buffer.alloc(0))).to.equal(true);
      expect(await redis.pttl(key)).to.be.within(1, 60_000);
      expect(await redis.keys(`${key}:*`)).to.deep.equal([]);
    });
  }

  it('replace what was there at once: a reader never sees half of one', async () => {
    const values = [1, 2].map((byte) => Buffer.alloc(5 * MIB, byte));
    await writeValue(redis, key, [values[0] as Buffer], 60_000);
    const writing = writeValue(redis, key, [values[1] as Buffer], 60_000);
    let written = false;
    void writing.then(() => {
      written = true;
    });
    while (!written) {
      const seen = await redis.getBuffer(key);
      expect(values.some((value) => seen?.equals(value))).to.equal(true);
    }
  });

  it('are not there, rather than mixed, when another takes their place while they are read', async () => {
    await writeValue(redis, key, [Buffer.alloc(5 * MIB, 1)], 60_000);
    const other = redis.duplicate();
    let reads = 0;
    const between = {
      strlen: (name: string) => redis.strlen(name),
      getrangeBuffer: async (name: string, start: number, end: number) => {
        reads += 1;
        if (reads === 3) await other.set(name, Buffer.alloc(5 * MIB, 2));
        return await redis.getrangeBuffer(name, start, end);
      },
    };
    expect(await readValue(between as Redis, key)).to.equal(undefined);
    other.disconnect();
    await redis.unlink(key);
    expect(await readValue(redis, key)).to.equal(undefined);
  });
});
