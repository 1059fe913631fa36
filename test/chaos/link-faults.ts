import { setTimeout as sleep } from 'node:timers/promises';
import type { Member } from './chaos-cluster.js';
import { between, draw, type Fault, fault, pass, type Scene, type Victim } from './fault.js';
import type { Excuse } from './history.js';

const POLL_MS = 20;
const KINDS = { gateway: 'gateways', worker: 'workers' } as const;

/** What a broken link means: a gateway without Redis must refuse, a worker's work goes elsewhere. */
const EXCUSES: Record<keyof typeof KINDS, Excuse> = {
  gateway: { codes: ['queue_unavailable', 'overloaded'], outage: true, recoveryMs: 2000 },
  worker: { codes: ['overloaded'], outage: false, recoveryMs: 4500 },
};

/** Links to Redis that break, hang or crawl. */
export const LINK_FAULTS: readonly Fault[] = (['gateway', 'worker'] as const).flatMap((kind) => [
  linkFault(`${kind}-link-cut`, kind, EXCUSES[kind], async ({ link }, { random }) => {
    link.cut();
    await pass(random, 200, 4000);
  }),
  linkFault(`${kind}-link-frozen`, kind, EXCUSES[kind], async ({ link }, { random }) => {
    link.freeze();
    await pass(random, 2000, 6000);
  }),
  linkFault(
    `${kind}-link-slow`,
    kind,
    { ...EXCUSES[kind], outage: false, codes: ['overloaded'] },
    async ({ link }, { random }) => {
      link.delayMs = between(random, 20, 200);
      await pass(random, 2000, 5000);
    },
  ),
]);

function linkFault(
  name: string,
  on: Victim & keyof typeof KINDS,
  excuse: Excuse,
  run: (member: Member, scene: Scene) => Promise<void>,
): Fault {
  return fault(name, on, excuse, async (scene, told) => {
    const member = await draw(scene, KINDS[on], told);
    // While Redis is away there is nothing to break.
    while (member.link.connections === 0) await sleep(POLL_MS);
    told(member.name);
    try {
      await run(member, scene);
    } finally {
      member.link.mend();
    }
  });
}
