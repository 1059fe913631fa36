import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../host.js';
import type { Loaded } from '../messages.js';

/** What a load process is told, in a file. */
export interface LoadSpec {
  /** Where to POST. */
  url: string;
  /** JSON bodies, sent in turn. */
  bodies: object[];
  /** Each sends its next request when its last is answered. */
  clients: number;
  /** Sent but not counted at the start, in ms. */
  warmUpMs: number;
  measureMs: number;
}

export type LoadResult = Omit<Loaded, 'type'>;

const TIMEOUT_MS = 15_000;

/** Runs in a process of its own, so that its work is the kernel's to schedule, as a client's is. */
export async function loadCommand(specFile: string, host: Host): Promise<number> {
  const spec = JSON.parse(await readFile(specFile, 'utf8')) as LoadSpec;
  const result = await closedLoop(spec, host.stop.asked);
  host.parent?.tell({ type: 'loaded', ...result });
  return 0;
}

async function closedLoop(spec: LoadSpec, stop: AbortSignal): Promise<LoadResult> {
  const { url, clients, warmUpMs, measureMs } = spec;
  const bodies = spec.bodies.map((body) => Buffer.from(JSON.stringify(body)));
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const target = new URL(url);
  const beginAt = performance.now() + warmUpMs;
  const endAt = beginAt + measureMs;
  let next = 0;
  let answered = 0;
  let failed = 0;
  let reason: string | undefined;
  const client = async (): Promise<void> => {
    while (performance.now() < endAt && !stop.aborted) {
      const body = bodies[next++ % bodies.length] ?? Buffer.alloc(0);
      const fault = await post(target, agent, body);
      const now = performance.now();
      if (now < beginAt || now >= endAt) continue;
      if (fault === undefined) answered++;
      else {
        failed++;
        reason ??= fault;
        // A server that refuses at once must not be stormed.
        await sleep(20);
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  return { requestsPerSecond: (answered * 1000) / measureMs, failed, ...(reason ? { reason } : {}) };
}

/** Why it was not answered with 200, or undefined. */
function post(url: URL, agent: Agent, body: Buffer): Promise<string | undefined> {
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': body.byteLength };
    const sent = request(url, { method: 'POST', agent, headers, timeout: TIMEOUT_MS }, (response) => {
      response.resume();
      response.once('end', () =>
        resolve(response.statusCode === 200 ? undefined : `status ${response.statusCode}`),
      );
      response.once('error', (error) => resolve(error.message));
    });
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.once('error', (error) => resolve(error.message));
    sent.end(body);
  });
}
