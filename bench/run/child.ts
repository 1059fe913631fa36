import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/** A process of the bench's own that is asked over its channel and ends when the channel does. */
export class Child<Asked extends object, Told extends { type: string }> {
  readonly #process: ChildProcess;
  #listener: (message: Told) => void = () => undefined;
  #ended: string | undefined;

  constructor(file: string, args: readonly string[] = []) {
    this.#process = fork(new URL(`../${file}`, import.meta.url), args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#process.on('message', (message) => this.#listener(message as Told));
    this.#process.once('exit', (code, signal) => {
      this.#ended = `${file} ended with ${signal ?? code}`;
      this.#listener({ type: 'failed', message: this.#ended } as unknown as Told);
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /**
   * Sends a request, if there is one, and waits for the message of a type; others on the way go to `onOther`.
   * @throws Error when the child tells a failure or ends.
   */
  ask<T extends Told['type']>(
    message: Asked | undefined,
    wanted: T,
    onOther: (message: Told) => void = () => undefined,
  ): Promise<Extract<Told, { type: T }>> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(new Error(this.#ended));
      this.#listener = (told) => {
        if (told.type === wanted) resolve(told as Extract<Told, { type: T }>);
        else if (told.type === 'failed') reject(new Error((told as { message?: string }).message));
        else onOther(told);
      };
      if (message) this.#process.send(message);
    });
  }

  /** Nothing in it is worth an orderly end. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}
