import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Random } from '../support/random.js';
import type { ChaosCluster, Member } from './chaos-cluster.js';
import type { RecordingClient } from './client.js';
import type { Excuse } from './history.js';
import type { Questions } from './questions.js';

/** What a fault is done to. Only one of a kind is disturbed at a time, so that the others can take over. */
export type Victim = 'worker' | 'gateway' | 'redis' | 'client';

export interface Scene {
  readonly cluster: ChaosCluster;
  /** Straight to Redis, past every link. */
  readonly redis: Redis;
  readonly client: RecordingClient;
  readonly questions: Questions;
  readonly random: Random;
}

export interface Fault extends Excuse {
  readonly name: string;
  readonly on: Victim;
  /**
   * Brings it about, and resolves when what it broke is whole again.
   * @param told is given the victim's name before anything happens to it.
   * @throws Error when it could not be brought about.
   */
  run(scene: Scene, told: (target: string) => void): Promise<void>;
}

export function between(random: Random, least: number, most: number): number {
  return least + random() * (most - least);
}

export function oneOf<T>(random: Random, list: readonly T[]): T {
  const chosen = list[Math.floor(random() * list.length)];
  if (chosen === undefined) throw new Error('there is nothing to choose from');
  return chosen;
}

export function fault(name: string, on: Victim, excuse: Partial<Excuse>, run: Fault['run']): Fault {
  return { name, on, codes: [], outage: false, recoveryMs: 0, ...excuse, run };
}

/** Draws a gateway or worker that serves. */
export async function draw(
  scene: Scene,
  kind: 'gateways' | 'workers',
  told: (target: string) => void,
): Promise<Member> {
  const member = oneOf(scene.random, scene.cluster[kind]);
  await member.serving();
  told(member.name);
  return member;
}

/** Waits between `least` and `most` milliseconds. */
export async function pass(random: Random, least: number, most: number): Promise<void> {
  await sleep(between(random, least, most));
}
