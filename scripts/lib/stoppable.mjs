// Running commands that a signal ends in order: with everything they started, and before we end ourselves.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
/** npm and a terminal may both send the same Ctrl-C: two at once are one. */
const SAME_SIGNAL_MS = 1000;
/** A command that has not ended after this is ended the hard way. */
const FORCE_AFTER_MS = 5000;
const POLL_MS = 20;

export class Stoppable {
  #child;
  #exited = Promise.resolve();
  #askedAt = 0;
  #releases = [];
  #onSignal = (signal) => void this.#stop(signal);

  constructor() {
    for (const signal of Object.keys(EXIT_CODES)) process.on(signal, this.#onSignal);
  }

  get isStopping() {
    return this.#askedAt > 0;
  }

  /** Signals mean again what they meant before. */
  close() {
    for (const signal of Object.keys(EXIT_CODES)) process.off(signal, this.#onSignal);
  }

  /** What to do when a signal ends the process, after the command has ended. */
  beforeExit(release) {
    this.#releases.push(release);
  }

  /**
   * Runs a command on our own terminal; resolves with its exit code (a signal counts as 1), and never once
   * a signal has come: the process ends then.
   */
  run(command, args, { onStart, ...options } = {}) {
    return new Promise((resolve) => {
      // A group of its own: what the command starts can be ended with it, and a terminal's Ctrl-C reaches us
      // alone, who wait for its end. Left behind, an `npm ci` would write into the next one's folders.
      const child = spawn(command, args, {
        stdio: ['ignore', 'inherit', 'inherit'],
        detached: true,
        ...options,
      });
      this.#child = child;
      this.#exited = new Promise((exited) => {
        const over = (code) => {
          exited();
          if (this.isStopping) return;
          this.#child = undefined;
          resolve(code);
        };
        child.once('error', (error) => {
          console.error(`${command} could not be started: ${error.message}`);
          over(1);
        });
        child.once('exit', (code, signal) => {
          if (signal && !this.isStopping) console.error(`${command} ended with ${signal}`);
          over(code ?? 1);
        });
      });
      if (child.pid !== undefined) onStart?.(child.pid);
    });
  }

  async #stop(signal) {
    const pid = this.#child?.pid;
    if (this.isStopping) {
      if (pid && performance.now() - this.#askedAt > SAME_SIGNAL_MS) signalGroup(pid, 'SIGKILL');
      return;
    }
    this.#askedAt = performance.now();
    console.log('\nStopping...');
    if (pid !== undefined) {
      signalGroup(pid, 'SIGTERM');
      const timer = setTimeout(() => signalGroup(pid, 'SIGKILL'), FORCE_AFTER_MS);
      await this.#exited;
      // The command's own children may take a moment longer.
      while (performance.now() - this.#askedAt < FORCE_AFTER_MS && signalGroup(pid, 0)) await sleep(POLL_MS);
      clearTimeout(timer);
      signalGroup(pid, 'SIGKILL');
    }
    for (const release of this.#releases) release();
    console.log('Stopped.');
    process.exit(EXIT_CODES[signal]);
  }
}

/** Whether there was anybody to signal. */
function signalGroup(pid, signal) {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
