import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FailedCall, REFUSALS } from './history.js';
import { codeOf, jsonOf, type Received, type Sent, send } from './http-send.js';

/** Nobody waits longer for one call than what it asks to wait for and this, in ms. */
const PATIENCE_MS = 20_000;
const PAUSE_MS = 250;

export interface Call extends Sent {
  path: string;
  /** How long the answer may take because it is asked to, in ms. */
  waitMs?: number;
}

/** Calls that change nothing when they are repeated: made until they are answered, at one gateway after the other. */
export class PatientCalls {
  readonly #now: () => number;
  readonly #gateways: () => readonly string[];
  readonly #agent: Agent;
  #next = 0;

  constructor(now: () => number, gateways: () => readonly string[], agent: Agent) {
    this.#now = now;
    this.#gateways = gateways;
    this.#agent = agent;
  }

  /**
   * @param failed gets every call that was refused for now, or whose connection was refused or broke.
   * @param signal gives up.
   * @returns the answer; undefined where it was given up.
   */
  async make(call: Call, failed: FailedCall[], signal: AbortSignal): Promise<Received | undefined> {
    while (!signal.aborted) {
      const from = this.#now();
      const answer = await this.#once(call, signal);
      if (typeof answer !== 'string') {
        if (!REFUSALS.includes(answer.status)) return answer;
        failed.push({ from, to: this.#now(), code: codeIn(answer) });
      } else if (!signal.aborted) {
        failed.push({ from, to: this.#now(), code: answer });
      }
      await sleep(PAUSE_MS);
    }
    return undefined;
  }

  async #once({ path, waitMs = 0, ...sent }: Call, signal: AbortSignal): Promise<Received | string> {
    const urls = this.#gateways();
    const patience = AbortSignal.timeout(waitMs + PATIENCE_MS);
    const url = `${urls[this.#next++ % urls.length]}${path}`;
    try {
      return await send(url, sent, this.#agent, AbortSignal.any([signal, patience]));
    } catch (error) {
      if (patience.aborted) return 'nothing';
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'refused' : 'broken';
    }
  }
}

function codeIn(answer: Received): string {
  try {
    return codeOf(jsonOf(answer)) || String(answer.status);
  } catch {
    return String(answer.status);
  }
}
