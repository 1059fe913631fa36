import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { FromChild } from '../messages.js';

export interface ChildSpec {
  /** As a person reads it: `worker 1`. */
  name: string;
  mainFile: string;
  args: string[];
  env: NodeJS.ProcessEnv;
}

export interface Child {
  readonly pid: number;
  /** `SIGKILL`, `exit code 1`; never rejects. */
  readonly ended: Promise<string>;
  onMessage(listener: (message: FromChild) => void): void;
  signal(name: NodeJS.Signals): void;
}

/** Starts a process of the same program. Its channel to us is how it notices that we died. */
export function startChild({ mainFile, args, env }: ChildSpec): Child {
  // Its output goes straight to ours: nothing is lost or held up by a busy or dying parent.
  const child = fork(mainFile, args, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(
    ([code, signal]) => String(signal ?? `exit code ${code}`),
    (error: Error) => error.message,
  );
  // Sending to one that just died is answered by its end.
  child.on('error', () => undefined);
  return {
    pid: child.pid ?? 0,
    ended,
    onMessage: (listener) => child.on('message', (message) => listener(message as FromChild)),
    signal: (name) => child.kill(name),
  };
}
