import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '@millrace/shared';
import type { Progress, Ready, Refused } from '../messages.js';
import { Backoff, secondsText } from './backoff.js';
import { type Child, type ChildSpec, startChild } from './child-process.js';

/** One that dies this often without ever being ready will not get better by itself. */
const DEATHS_BEFORE_GIVING_UP = 3;
/** Beyond its own grace period, before it is ended the hard way. */
const STOP_MARGIN_MS = 3000;

/**
 * A child process that is started again, with backoff, when it dies unasked.
 *
 * Modes: starting (no process of it has been ready yet: a refusal is final), serving (one has: it is brought
 * back for ever), stopping (nothing is started again).
 */
export class Supervised {
  #mode: 'starting' | 'serving' | 'stopping' = 'starting';
  #child: Child | undefined;
  #url: string | undefined;
  #pause = new AbortController();
  readonly #backoff = new Backoff();

  constructor(
    /** Asked before each start: a port chosen by the first one is kept for the next. */
    readonly spec: () => ChildSpec,
    readonly say: (line: string) => void,
    readonly startProcess: (spec: ChildSpec) => Child = startChild,
    /** Told how far it is with what it does before it serves. */
    readonly onProgress: (progress: Progress) => void = () => undefined,
  ) {}

  /**
   * Starts it and resolves when it first serves.
   * @throws StartupError when it refuses, or keeps dying before it serves.
   */
  start(): Promise<Ready> {
    return new Promise((resolve, reject) => {
      void this.#keepRunning(resolve, reject);
    });
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** From now on its death is nothing to mend, nor to speak of. */
  letEnd(): void {
    this.#enter('stopping');
  }

  /** Ends it in order; the hard way if it takes longer than its grace period. */
  async stop(graceMs: number): Promise<void> {
    this.#enter('stopping');
    const child = this.#child;
    if (!child) return;
    child.signal('SIGTERM');
    const timer = setTimeout(() => child.signal('SIGKILL'), graceMs + STOP_MARGIN_MS);
    await child.ended;
    clearTimeout(timer);
  }

  kill9(): void {
    this.#enter('stopping');
    this.#child?.signal('SIGKILL');
  }

  #enter(mode: 'serving' | 'stopping'): void {
    // Stopping is the end: a process that became ready meanwhile changes nothing.
    if (this.#mode === 'stopping') return;
    this.#mode = mode;
    if (mode === 'stopping') this.#pause.abort();
  }

  #isStopping(): boolean {
    return this.#mode === 'stopping';
  }

  /** A new process of it may be at another address than the one that a person was told. */
  #sayWhere(name: string, url: string): void {
    if (this.#url !== undefined && this.#url !== url) this.say(`${name} is now at ${url}`);
    this.#url = url;
  }

  async #keepRunning(onReady: (ready: Ready) => void, onRefused: (error: Error) => void): Promise<void> {
    let deaths = 0;
    while (!this.#isStopping()) {
      const startedAt = performance.now();
      const { name } = this.spec();
      const child = this.startProcess(this.spec());
      this.#child = child;
      let refused: Refused | undefined;
      child.onMessage((message) => {
        if (message.type === 'refused') refused = message;
        if (message.type === 'progress' && !this.#isStopping()) this.onProgress(message);
        if (message.type !== 'ready') return;
        this.#enter('serving');
        this.#sayWhere(name, message.url);
        onReady(message);
      });
      const how = await child.ended;
      if (this.#isStopping()) return;
      const reason = refused ? `: ${refused.sentence}` : '';
      if (this.#mode === 'starting') {
        if (refused) return onRefused(new StartupError(refused.sentence, refused.nextStep));
        deaths += 1;
        if (deaths >= DEATHS_BEFORE_GIVING_UP) return onRefused(keepsDying(name, how));
      }
      const delay = this.#backoff.delayMs(performance.now() - startedAt);
      this.say(
        `${name} (${child.pid}) ended with ${how}${reason}; starting it again in ${secondsText(delay)}`,
      );
      await sleep(delay, undefined, { signal: this.#pause.signal }).catch(() => undefined);
    }
  }
}

function keepsDying(name: string, how: string): StartupError {
  return new StartupError(
    `The ${name} ended with ${how} ${DEATHS_BEFORE_GIVING_UP} times before it served anything.`,
    'Its output is above; --log-level debug shows more.',
  );
}
