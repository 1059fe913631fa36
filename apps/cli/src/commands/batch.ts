import { randomUUID } from 'node:crypto';
import { StartupError } from '@millrace/shared';
import { collect, requireWritable } from '../bulk/collect.js';
import { explained } from '../bulk/explain.js';
import { mayPass, NoAnswer, Refused } from '../bulk/faults.js';
import { follow } from '../bulk/follow.js';
import { Http } from '../bulk/http.js';
import { withInput } from '../bulk/input.js';
import { Patience } from '../bulk/patience.js';
import { type CommandSaid, comeBack, placesOf, programOf, requireBatchId, takeBack } from '../bulk/places.js';
import { BulkServer, type Turn } from '../bulk/server.js';
import { serverUrl } from '../bulk/server-url.js';
import { bytesText } from '../bulk/texts.js';
import type { Host } from '../host.js';
import { openSteps, type Step, type StepView } from '../steps.js';

export interface BatchOptions {
  url?: string;
  apiKey?: string;
  endpoint?: string;
  window?: string;
  out?: string;
  errors?: string;
  /** Ids of batches: at most one of these. */
  resume?: string;
  pause?: string;
  cancel?: string;
  /** Delete what the server keeps of it once the results are here. */
  delete?: boolean;
}

export const ENDPOINT = '/v1/embeddings';
export const WINDOW = '24h';
/** What stands for a batch's id where none is known yet, until its results are written. */
const UNKNOWN_ID = 'batch';
const WIDTHS = { label: 10, bar: 14, detail: 48 };

/**
 * `millrace batch FILE`: runs a file of requests at a server, from the upload to the files with the answers.
 * @returns 0 when all lines were answered, 2 when some failed, 1 when the command was left before.
 */
export async function batchCommand(
  file: string | undefined,
  options: BatchOptions,
  host: Host,
): Promise<number> {
  const { resume, pause, cancel } = options;
  const ids = [resume, pause, cancel].filter((id) => id !== undefined);
  if (ids.length > 1) {
    throw new StartupError('--resume, --pause and --cancel do not go together.', 'Use one of them.');
  }
  for (const id of ids) requireBatchId(id);
  const run = new BatchCommand(file, options, host);
  if (cancel !== undefined) return await run.turn('cancel', cancel);
  if (pause !== undefined) return await run.turn('pause', pause);
  return await run.run();
}

class BatchCommand {
  readonly #file: string | undefined;
  readonly #options: BatchOptions;
  readonly #host: Host;
  readonly #signal: AbortSignal;
  readonly #hasKey: boolean;
  readonly #server: BulkServer;
  readonly #view: StepView;
  readonly #patience: Patience;
  #shown: Step = { label: '', fraction: 0 };
  #id: string | undefined;
  /** Whether the server was asked to make a batch. */
  #isAsked = false;

  constructor(file: string | undefined, options: BatchOptions, host: Host) {
    this.#file = file;
    this.#options = options;
    this.#host = host;
    this.#signal = host.stop.asked;
    this.#id = options.resume;
    const apiKey = options.apiKey || host.env.MILLRACE_API_KEY || undefined;
    this.#hasKey = apiKey !== undefined;
    this.#server = new BulkServer(new Http(serverUrl(options.url, host.env), apiKey, this.#signal));
    this.#view = openSteps(host, WIDTHS);
    this.#patience = new Patience(this.#signal, (why) => {
      this.#view.show({ label: 'retrying', fraction: this.#shown.fraction, detail: why });
    });
  }

  /** Cancels or pauses a batch. */
  async turn(turn: Turn, id: string): Promise<number> {
    try {
      const { status } = await this.#server.turn(id, turn);
      this.#host.say(`Batch ${id} is ${status}.`);
      return 0;
    } catch (error) {
      throw this.#explained(error);
    }
  }

  async run(): Promise<number> {
    try {
      return await this.#run();
    } catch (error) {
      if (!this.#signal.aborted) throw this.#explained(error);
      this.#view.close();
      this.#sayWhereItIs();
      return 1;
    } finally {
      this.#view.close();
    }
  }

  async #run(): Promise<number> {
    const { resume } = this.#options;
    await requireWritable(placesOf(this.#said, resume ?? UNKNOWN_ID));
    const id = resume === undefined ? await this.#begin() : await this.#comeBackTo(resume);
    const show = (step: Step) => this.#show(step);
    const server = this.#server;
    const patience = this.#patience;
    const batch = await follow(server, id, { patience, signal: this.#signal, show });
    const { said, exitCode } = await collect(batch, {
      server,
      patience,
      show,
      places: placesOf(this.#said, id),
    });
    this.#view.close();
    for (const line of said) this.#host.say(line);
    if (this.#options.delete) {
      const files = [batch.output_file_id, batch.error_file_id, batch.input_file_id];
      for (const fileId of files) if (fileId !== null) await patience.with(() => server.remove(fileId));
    }
    return exitCode;
  }

  /** Sends the file and makes a batch of it. Each has a name of its own, so that what is sent again is not run again. */
  async #begin(): Promise<string> {
    const { endpoint = ENDPOINT, window = WINDOW } = this.#options;
    if (this.#file === undefined) {
      throw new StartupError(
        'There is no file to run.',
        'Name one, "-" for standard input, or a batch by --resume.',
      );
    }
    const server = this.#server;
    const key = `millrace-batch-${randomUUID()}`;
    return await withInput(this.#file, this.#host.stdin, this.#signal, async (input) => {
      await this.#first(() => server.reach());
      const onBytes = (bytes: number) =>
        this.#show({
          label: 'sending',
          fraction: bytes / input.bytes,
          detail: `${bytesText(bytes)} of ${bytesText(input.bytes)}`,
        });
      onBytes(0);
      const input_file_id = await this.#patience.with(() => server.upload(input, key, onBytes));
      const asked = { input_file_id, endpoint, completion_window: window };
      this.#isAsked = true;
      // Asked to end, it waits for this answer: otherwise nobody would know of the batch.
      const { id } = await this.#patience
        .with(() => server.create(asked, key, this.#host.stop.forced))
        .catch(async (error: unknown) => {
          // Nobody will ask for a batch of what was sent.
          const isOver = error instanceof Refused && !mayPass(error);
          if (isOver) await server.remove(input_file_id).catch(() => undefined);
          throw error;
        });
      this.#view.close();
      this.#id = id;
      this.#host.say(`Batch ${id}`);
      return id;
    });
  }

  /** A batch that was paused goes on. */
  async #comeBackTo(id: string): Promise<string> {
    const { status } = await this.#first(() => this.#server.batch(id));
    if (status === 'paused') await this.#patience.with(() => this.#server.turn(id, 'resume'));
    return id;
  }

  /** The first that is asked of the server: where nothing answers, there is nothing to wait for. */
  async #first<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof NoAnswer || !mayPass(error)) throw error;
      return await this.#patience.with(ask);
    }
  }

  get #said(): CommandSaid {
    const { out, errors, url } = this.#options;
    return { program: programOf(this.#host.env), file: this.#file, out, errors, url };
  }

  #show(step: Step): void {
    this.#shown = step;
    this.#view.show(step);
  }

  #sayWhereItIs(): void {
    const { say } = this.#host;
    if (this.#id === undefined) {
      say(
        this.#isAsked
          ? 'Left before the server said whether it has the batch: GET /v1/batches lists it if it does.'
          : 'Left before a batch was made: nothing is run.',
      );
      return;
    }
    say(`Batch ${this.#id} goes on at the server. Come back to it with:`);
    say(`  ${comeBack(this.#id, this.#said)}`);
    say('Take it back with:');
    say(`  ${takeBack(this.#id, this.#said)}`);
  }

  #explained(error: unknown): unknown {
    const id = this.#id;
    return explained(error, {
      url: this.#server.url,
      hasKey: this.#hasKey,
      comeBack: id === undefined ? undefined : comeBack(id, this.#said),
    });
  }
}
