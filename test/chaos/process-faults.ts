import type { Member } from './chaos-cluster.js';
import { draw, type Fault, fault, pass } from './fault.js';

/** Work of a dead worker is back in 2.9 to 3.5 s and then has to run. */
const TAKEN_OVER_MS = 4500;
/** A worker's lock on its jobs, in ms. */
const LOCK_MS = 3000;

/** Meanwhile less is answered, so what has little time may be refused. */
const LESS_CAPACITY = { codes: ['overloaded'], recoveryMs: TAKEN_OVER_MS };

/** Gateways and workers that die, stand still or get the time wrong. */
export const PROCESS_FAULTS: readonly Fault[] = [
  fault('worker-kill', 'worker', LESS_CAPACITY, async (scene, told) => {
    await (await draw(scene, 'workers', told)).killAndBack('SIGKILL');
  }),

  // It comes back to find its work done elsewhere.
  fault('worker-stop', 'worker', LESS_CAPACITY, async (scene, told) => {
    const worker = await draw(scene, 'workers', told);
    await worker.signal('SIGSTOP');
    await pass(scene.random, LOCK_MS + 500, 2 * LOCK_MS);
    await worker.signal('SIGCONT');
  }),

  fault('gateway-kill', 'gateway', { codes: ['refused', 'broken'], recoveryMs: 500 }, async (scene, told) => {
    await (await draw(scene, 'gateways', told)).killAndBack('SIGKILL');
  }),

  // Told to end, they finish what they hold. A client may notice by a refused connect, and where it sends on a kept
  // connection in the very moment in which that is closed: HTTP/1.1 has no way around this but a retry.
  fault('worker-drain', 'worker', LESS_CAPACITY, async (scene, told) => {
    await endInOrder(await draw(scene, 'workers', told));
  }),

  fault(
    'gateway-drain',
    'gateway',
    { codes: ['refused', 'broken'], recoveryMs: 500 },
    async (scene, told) => {
      await endInOrder(await draw(scene, 'gateways', told));
    },
  ),

  fault('worker-clock-jump', 'worker', { recoveryMs: 1000 }, async (scene, told) => {
    await (await draw(scene, 'workers', told)).signal('SIGUSR2');
    await pass(scene.random, 1000, 3000);
  }),

  fault('gateway-clock-jump', 'gateway', { recoveryMs: 1000 }, async (scene, told) => {
    await (await draw(scene, 'gateways', told)).signal('SIGUSR2');
    await pass(scene.random, 1000, 3000);
  }),
];

async function endInOrder(member: Member): Promise<void> {
  const how = await member.killAndBack('SIGTERM');
  if (how !== 0) throw new Error(`it ended with ${how}`);
}
