import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Bench } from '../run/scenario.js';

/** What the keeper's process tells: each line of its command, and its end. */
export type FromKeeper = { type: 'line'; line: string } | { type: 'ended'; how: string };

/** How many of its last lines are shown when a command ends unasked. */
const LINES_SHOWN = 15;

/** A foreign command that ends with the bench, with everything that it started. */
export class KeptCommand {
  readonly #keeper: ChildProcess;
  readonly #lines: string[] = [];
  #ended: string | undefined;
  #changed: () => void = () => undefined;

  constructor(bench: Bench, command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.#keeper = fork(new URL('../keeper.js', import.meta.url), [command, ...args], {
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#keeper.on('message', (message: FromKeeper) => {
      if (message.type === 'line') this.#lines.push(message.line);
      else this.#ended = message.how;
      this.#changed();
    });
    this.#keeper.once('exit', () => {
      this.#ended ??= 'its keeper';
      this.#changed();
    });
    bench.own(() => this.stop());
  }

  get pid(): number {
    return this.#keeper.pid ?? 0;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Waits for a line that matches. @throws Error, showing what it said, when it ends before. */
  async says(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = this.#lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      if (this.#ended !== undefined) throw new Error(this.complaint());
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** Why it is no more, with what it said last. */
  complaint(): string {
    return `it ended with ${this.#ended}; it said:\n${this.#lines.slice(-LINES_SHOWN).join('\n')}`;
  }

  /** Ends it in order, by force if that takes long. */
  async stop(): Promise<void> {
    if (this.#keeper.exitCode !== null || this.#keeper.signalCode !== null) return;
    const exited = once(this.#keeper, 'exit');
    this.#keeper.kill('SIGTERM');
    await exited;
  }
}
