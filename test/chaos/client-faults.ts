import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordingClient } from './client.js';
import { between, type Fault, fault } from './fault.js';
import { REFUSALS } from './history.js';
import type { Question } from './questions.js';

const LEAVING = 6;
const POISONED = 3;
const WAIT_MS = 10_000;
/** Two workers must die of an input alone before it is given up. */
const HANG_WAIT_MS = 30_000;

const REFUSED_PAUSE_MS = 500;

/**
 * It ends three workers one after the other, and there are three: all may be starting at once. The request itself
 * outlasts the grace of a gateway that drains.
 */
const HANG = { codes: ['overloaded', 'no_worker', 'shutting_down'], recoveryMs: 4500, kills: true };

/** Clients that go away, and clients that send what a model can't take. */
export const CLIENT_FAULTS: readonly Fault[] = [
  fault('client-vanish', 'client', {}, async ({ client, questions, random }, told) => {
    told(`${LEAVING} clients`);
    await Promise.all(
      Array.from({ length: LEAVING }, async () => {
        const leave = new AbortController();
        const asked = client.ask(questions.long(), { waitMs: WAIT_MS, leave: leave.signal });
        await sleep(between(random, 5, 150));
        leave.abort();
        await asked;
      }),
    );
  }),

  // No excuse: each names in `asked` which of its items must fail, and how.
  fault('poison', 'client', {}, async ({ client, questions }, told) => {
    told(`${POISONED} requests`);
    await Promise.all(
      Array.from({ length: POISONED }, () => untilAccepted(client, () => questions.poison(), WAIT_MS)),
    );
  }),

  // A run that hangs ends its worker; the input is given up after two such deaths, its mates are answered.
  fault('hang', 'worker', HANG, async ({ client, questions }, told) => {
    told('one request');
    await untilAccepted(client, () => questions.hanging(), HANG_WAIT_MS);
  }),
];

/** Asks until it isn't refused: a fault at the same time may close the door, and then nothing was done here. */
async function untilAccepted(
  client: RecordingClient,
  question: () => Question,
  waitMs: number,
): Promise<void> {
  for (;;) {
    const { outcome } = await client.ask(question(), { waitMs });
    if (outcome.is !== 'error' || !REFUSALS.includes(outcome.status)) return;
    await sleep(REFUSED_PAUSE_MS);
  }
}
