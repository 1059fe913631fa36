import { setTimeout as sleep } from 'node:timers/promises';
import { between, type Fault, fault } from './fault.js';

const LEAVING = 6;
const POISONED = 3;
const WAIT_MS = 10_000;

/** Clients that go away, and clients that send what a model can't take. */
export const CLIENT_FAULTS: readonly Fault[] = [
  fault('client-vanish', 'client', {}, async ({ client, questions, random }, told) => {
    told(`${LEAVING} clients`);
    await Promise.all(
      Array.from({ length: LEAVING }, async () => {
        const leave = new AbortController();
        const asked = client.ask(questions.long(), WAIT_MS, leave.signal);
        await sleep(between(random, 5, 150));
        leave.abort();
        await asked;
      }),
    );
  }),

  // No excuse: each names in `asked` which of its items must fail, and how.
  fault('poison', 'client', {}, async ({ client, questions }, told) => {
    told(`${POISONED} requests`);
    await Promise.all(Array.from({ length: POISONED }, () => client.ask(questions.poison(), WAIT_MS)));
  }),
];
