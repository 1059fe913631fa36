import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from '../support/cluster.js';
import { MINILM } from '../support/minilm.js';
import { caseOf, type FuzzCase } from './cases.js';
import { faultOf } from './judge.js';
import { KnownAnswers } from './known-answers.js';
import { ANSWER_MS, Lane, type Reply } from './lane.js';
import { DASHBOARD_PASSWORD } from './requests.js';

export interface FuzzOptions {
  requests: number;
  seed: number;
  /** The one case to send, to look at it. */
  only?: number;
  say(line: string): void;
}

export interface FuzzReport {
  requests: number;
  answers: number;
  /** How often each status came. */
  statuses: Record<string, number>;
  /** Known answers asked for among them and afterwards. */
  known: number;
  /** Resident memory in MB after the first fifth, and at the end. */
  memoryMb: Record<string, { before: number; after: number }>;
  faults: string[];
}

const LANES = 32;
/** Known answers are asked for once in so many cases. */
const KNOWN_EVERY = 250;
/** Largest growth of a process after the first fifth of the cases, in MB: caches and kept jobs fill, leaks go on. */
const MOST_GROWTH_MB = 256;
const MOST_FAULTS = 50;
const SETTLED_MS = 15_000;
const BODY_BYTES = 262_144;

/** Sends mutated requests to real processes and judges every answer, and the processes. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const cluster = await Cluster.start({
    models: ['identity', MINILM],
    env: {
      MILLRACE_MAX_BODY_BYTES: String(BODY_BYTES),
      MILLRACE_WAIT_MS: String(ANSWER_MS - 1000),
      MILLRACE_MAX_WAIT_MS: String(ANSWER_MS - 1000),
      MILLRACE_DASHBOARD_PASSWORD: DASHBOARD_PASSWORD,
    },
  });
  try {
    return await new Fuzzing(cluster, options).run();
  } finally {
    await cluster.stop();
  }
}

class Fuzzing {
  readonly #faults: string[] = [];
  readonly #statuses = new Map<number, number>();
  readonly #ended: string[] = [];
  #answers = 0;
  #next = 0;

  constructor(
    private readonly cluster: Cluster,
    private readonly options: FuzzOptions,
  ) {}

  async run(): Promise<FuzzReport> {
    const { cluster, options } = this;
    const pids = this.#watched();
    const known = await KnownAnswers.prepare(cluster.url);
    const total = options.only === undefined ? options.requests : 1;
    const beforeAt = Math.floor(total / 5);
    let before = residentMb(pids);
    const { hostname, port } = new URL(cluster.url);
    const work = async (): Promise<void> => {
      const lane = new Lane(hostname, Number(port));
      while (this.#next < total && this.#faults.length < MOST_FAULTS) {
        const nth = this.#next++;
        if (nth === beforeAt) before = residentMb(pids);
        if (nth % KNOWN_EVERY === 0) this.#faults.push(...(await known.ask()));
        if (nth > 0 && nth % 10_000 === 0) options.say(`  ${nth} sent, ${this.#faults.length} faults`);
        await this.#send(lane, caseOf(options.seed, options.only ?? nth));
      }
      lane.close();
    };
    await Promise.all(Array.from({ length: LANES }, work));
    await this.#judgeAfterwards(known, pids);
    const after = residentMb(pids);
    const memoryMb: FuzzReport['memoryMb'] = {};
    for (const name of Object.keys(pids)) {
      const [was, is] = [before[name] ?? 0, after[name] ?? 0];
      memoryMb[name] = { before: was, after: is };
      if (is - was > MOST_GROWTH_MB) this.#faults.push(`${name} grew from ${was} to ${is} MB`);
    }
    return {
      requests: this.#next,
      answers: this.#answers,
      statuses: Object.fromEntries([...this.#statuses].sort(([a], [b]) => a - b)),
      known: known.asked,
      memoryMb,
      faults: this.#faults,
    };
  }

  /** Processes by name; one that ends is a fault. */
  #watched(): Record<string, number> {
    const { gateways, workers, redis } = this.cluster;
    const pids: Record<string, number> = { redis: redis.pid };
    for (const [kind, processes] of Object.entries({ gateway: gateways, worker: workers })) {
      for (const process of processes) {
        pids[kind] = process.pid;
        void process.ended.then((how) => this.#ended.push(`a ${kind} ended with ${how}`));
      }
    }
    return pids;
  }

  async #send(lane: Lane, each: FuzzCase): Promise<void> {
    const reply = await lane
      .send(each)
      .catch((error: Error): Reply => ({ answers: [], fault: `no connection: ${error.message}` }));
    if (reply.fault !== undefined) this.#fault(each, reply.fault);
    for (const [i, answer] of reply.answers.entries()) {
      this.#answers++;
      this.#statuses.set(answer.status, (this.#statuses.get(answer.status) ?? 0) + 1);
      const fault = faultOf(answer, each.door, each.methods?.[i]);
      if (fault !== undefined) this.#fault(each, fault);
    }
  }

  #fault({ index, what }: FuzzCase, fault: string): void {
    this.#faults.push(`case ${index} (${what}): ${fault}`);
  }

  /** The server as it was: right, ready, with nothing left over. */
  async #judgeAfterwards(known: KnownAnswers, pids: Record<string, number>): Promise<void> {
    for (let i = 0; i < 10; i++) this.#faults.push(...(await known.ask()));
    const { url } = this.cluster;
    const ready = await fetch(`${url}/v2/health/ready`);
    if (ready.status !== 200) this.#faults.push(`not ready afterwards: ${await ready.text()}`);
    const deadline = performance.now() + SETTLED_MS;
    let left = await this.#leftOver();
    while (left !== undefined && performance.now() < deadline) {
      await sleep(500);
      left = await this.#leftOver();
    }
    if (left !== undefined) this.#faults.push(`left over: ${left}`);
    this.#faults.push(...this.#ended);
    if (residentMb({ redis: pids.redis ?? 0 }).redis === 0) this.#faults.push('Redis ended');
  }

  /** Waiting requests and jobs that nobody waits for any more. */
  async #leftOver(): Promise<string | undefined> {
    const lines = (await (await fetch(`${this.cluster.url}/metrics`)).text()).split('\n');
    return lines.find((line) => /^millrace_(gateway_waiting_\w+|queue_jobs\{.*\}) [^0]/.test(line));
  }
}

/** Resident memory by name, in MB; 0 for a process that is gone. */
function residentMb(pids: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, residentOf(pid)]));
}

function residentOf(pid: number): number {
  try {
    const kb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Math.round(Number(kb ?? 0) / 1024);
  } catch {
    return 0;
  }
}
