import type { Readable } from 'node:stream';
import type { FromChild } from './messages.js';

/**
 * What a command may know of the process it runs in. `main.ts` makes it from the real one, tests from
 * whatever they like.
 */
export interface Host {
  readonly env: NodeJS.ProcessEnv;
  /** The file to run for a process of another command. */
  readonly mainFile: string;
  readonly version: string;
  readonly pid: number;
  /** Whether output goes to a person's terminal. */
  readonly isTerminal: boolean;
  /** A line for the person or script that asked: stdout. */
  say(line: string): void;
  /** What is piped into the process. */
  stdin(): Readable;
  readonly stop: StopSignal;
  /** Ends the process by SIGKILL: what exit() would turn into an abort in the middle of a run. */
  killSelf(): Promise<never>;
  /** The `millrace up` that started this process, if one did. */
  readonly parent: Parent | undefined;
}

/** Aborted when the process should end in order; `forced` when it should end now. */
export interface StopSignal {
  readonly asked: AbortSignal;
  readonly forced: AbortSignal;
}

export interface Parent {
  tell(message: FromChild): void;
}
