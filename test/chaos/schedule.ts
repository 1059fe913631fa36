import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.js';
import { between, type Fault, type Scene, type Victim } from './fault.js';
import type { FaultRecord, History } from './history.js';

/** Between two faults of one kind of victim, in ms: two outages without a pause would be one long one. */
const PAUSE_MS = 1500;

/** A fault that isn't over by then never will be, in ms. */
const STUCK_MS = 90_000;

export interface Planned {
  /** Milliseconds after the faults began. */
  readonly at: number;
  readonly fault: Fault;
}

/** Rounds of every fault in an order drawn from the seed, until `lengthMs`; the first round is always whole. */
export function schedule(faults: readonly Fault[], random: Random, lengthMs: number): Planned[] {
  // A short run must still get through a round.
  const gapMs = Math.min(3000, lengthMs / (faults.length + 1));
  const planned: Planned[] = [];
  for (let at = 0, rounds = 0; at < lengthMs; rounds++) {
    for (const fault of shuffled(faults, random)) {
      if (rounds > 0 && at >= lengthMs) break;
      planned.push({ at, fault });
      at += between(random, 0.5 * gapMs, 1.5 * gapMs);
    }
  }
  return planned;
}

/** Brings the faults about and records them. Those on one kind of victim wait for each other; others overlap. */
export async function bringAbout(
  planned: readonly Planned[],
  scene: Scene,
  history: History,
  now: () => number,
  say: (line: string) => void,
): Promise<void> {
  const lanes = new Map<Victim, Promise<void>>();
  const began = performance.now();
  for (const { at, fault } of planned) {
    await sleep(Math.max(0, began + at - performance.now()));
    const lane = lanes.get(fault.on) ?? Promise.resolve();
    lanes.set(
      fault.on,
      lane.then(async () => {
        await bringOne(fault, scene, history, now, say);
        await sleep(PAUSE_MS);
      }),
    );
    // A lane that has fallen behind holds up the schedule: piled up, its faults would follow without a pause.
    await lane;
  }
  await Promise.all(lanes.values());
}

async function bringOne(
  fault: Fault,
  scene: Scene,
  history: History,
  now: () => number,
  say: (line: string) => void,
): Promise<void> {
  const record: FaultRecord = { name: fault.name, target: '', from: now(), to: Number.POSITIVE_INFINITY };
  history.faults.push(record);
  const limit = new AbortController();
  const stuck = sleep(STUCK_MS, undefined, { signal: limit.signal }).then(() => {
    throw new Error(
      `${fault.name} of ${record.target} has not ended for ${STUCK_MS} ms: the run can't go on`,
    );
  });
  const ran = fault.run(scene, (target) => {
    record.target = target;
    record.from = now();
  });
  const failed = await Promise.race([ran.catch((error: Error) => error.message), stuck]);
  limit.abort();
  record.to = now();
  if (failed !== undefined) record.failed = failed;
  const how = failed === undefined ? '' : ` failed: ${failed}`;
  say(`${seconds(record.from)} to ${seconds(record.to)}: ${fault.name} of ${record.target}${how}`);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}
