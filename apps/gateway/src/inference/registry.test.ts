import {
  announce,
  REGISTRY_ANNOUNCEMENTS_KEY,
  REGISTRY_EXPIRY_KEY,
  readRegistry,
  withdraw,
} from '@millrace/shared';
import { expect } from 'chai';
import { textModel } from '../test-support/models.js';
import { testRedis, uniqueName } from '../test-support/redis.js';

describe('the registry', () => {
  it('hides no worker behind an announcement that cannot be read', async () => {
    const redis = testRedis();
    const [id, broken, strange] = [uniqueName('good'), uniqueName('broken'), uniqueName('strange')];
    const now = Date.now();
    await announce(
      redis,
      {
        id,
        host: 'h',
        pid: 1,
        state: 'serving',
        contractVersions: [1],
        startedAt: now,
        models: [textModel('m')],
      },
      now,
    );
    await redis.hset(REGISTRY_ANNOUNCEMENTS_KEY, {
      [broken]: '{bad',
      [strange]: '{"id":"x","models":[null]}',
    });
    await redis.zadd(REGISTRY_EXPIRY_KEY, now + 10_000, broken, now + 10_000, strange);
    const ids = (await readRegistry(redis, now)).map((worker) => worker.id);
    for (const each of [id, broken, strange]) await withdraw(redis, each);
    redis.disconnect();
    expect(ids).to.include(id);
    expect(ids).not.to.include.members(['x']);
  });
});
