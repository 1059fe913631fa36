import { cancelKey } from '@millrace/shared';
import { expect } from 'chai';
import { until, waitingJobs } from '#gateway/test-support/redis.js';
import type { Feature } from '../feature.js';
import { requireRefusal } from '../refusal.js';

/** Whole seconds: some protocols know no less. */
const WAIT_MS = 1000;

const bearer = (key: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${key}` },
});

export const TROUBLE: readonly Feature[] = [
  {
    key: 'deadline',
    does: 'gives up at the deadline that the request says, and takes the work back',
    async run(door, { silent, redis }) {
      const began = performance.now();
      const answer = await door.ask(silent, ['a', 'b'], { waitMs: WAIT_MS });
      requireRefusal(door, answer, 'deadline_exceeded', 'a deadline that passed');
      expect(performance.now() - began).to.be.within(WAIT_MS * 0.9, WAIT_MS * 5);
      await until('the job is gone', async () => (await waitingJobs(redis, silent.queue)) === 0);
      const id = answer.header('x-request-id');
      if (id !== undefined) expect(await redis.exists(cancelKey(silent.queue, id))).to.equal(1);
    },
  },
  {
    key: 'clientGone',
    does: 'takes the work of a client that goes away back',
    async run(door, { silent, redis }) {
      const abort = new AbortController();
      const answer = door.ask(silent, ['a'], { signal: abort.signal }).catch((error: Error) => error);
      await until('the job waits', async () => (await waitingJobs(redis, silent.queue)) === 1);
      abort.abort();
      await answer;
      await until('the job is gone', async () => (await waitingJobs(redis, silent.queue)) === 0);
    },
  },
  {
    key: 'noWorker',
    does: 'answers at once, with a time to come back, while no worker serves the model',
    async run(door, { absent }) {
      requireRefusal(door, await door.ask(absent, ['a']), 'no_worker', 'no worker');
    },
  },
  {
    key: 'overload',
    does: 'answers overload at once, with a time to come back',
    async run(door, { full, redis }) {
      const abort = new AbortController();
      const waiting = door.ask(full, ['a'], { signal: abort.signal }).catch((error: Error) => error);
      await until('the queue is full', async () => (await waitingJobs(redis, full.queue)) === 1);
      requireRefusal(door, await door.ask(full, ['b']), 'queue_full', 'overload');
      abort.abort();
      await waiting;
      await until('it is empty again', async () => (await waitingJobs(redis, full.queue)) === 0);
    },
  },
  {
    key: 'redisAway',
    does: 'answers at once, with a time to come back, while Redis is away',
    async run(door, stage) {
      const cutOff = await stage.cutOff();
      let answer = await door.ask(cutOff, ['a']);
      // It may take the gateway a moment to see that its connection is gone.
      await until('it is refused', async () => {
        answer = await door.ask(cutOff, ['a']);
        return answer.status !== 200;
      });
      requireRefusal(door, answer, 'queue_unavailable', 'Redis away');
    },
  },
  {
    key: 'keyMissing',
    does: 'asks for an API key where there are any',
    async run(door, { keyed }) {
      const answer = await door.ask(keyed, ['a']);
      requireRefusal(door, answer, 'unauthorized', 'no API key');
      if (door.http) expect(answer.header('www-authenticate')).to.equal('Bearer');
    },
  },
  {
    key: 'keyWrong',
    does: 'refuses an API key that it does not know',
    async run(door, { keyed }) {
      const answer = await door.ask(keyed, ['a'], bearer('mr_wrong'));
      requireRefusal(door, answer, 'unauthorized', 'an unknown API key');
    },
  },
  {
    key: 'keyScope',
    does: 'refuses an API key of another scope, and takes the right one',
    async run(door, { keyed, keys }) {
      const refused = await door.ask(keyed, ['a'], bearer(keys.other));
      requireRefusal(door, refused, 'forbidden', 'an API key of another scope');
      expect((await door.ask(keyed, ['a'], bearer(keys.infer))).status).to.equal(200);
    },
  },
];
