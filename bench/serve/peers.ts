import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PreparedModel } from '@millrace/worker';
import type { AnswerCheck } from '../load/messages.js';
import type { Bench } from '../run/scenario.js';
import { freePort } from './free-port.js';
import { KeptCommand } from './kept-command.js';
import { answerCheck } from './minilm.js';
import type { SentenceLoad } from './sentence-load.js';
import type { Target } from './sustained.js';

/** What a peer takes and gives, as its folder's peers.json has it. */
interface PeerSpec {
  /** A request's JSON, with "$TEXT" where the sentence goes. */
  body: unknown;
  /** The way to the vector in an answer. */
  answer: (string | number)[];
}

/** How a peer is started; what is left out is as its own documentation has it. */
export interface PeerConfig {
  workers?: number;
  maxBatch?: number;
  /** Sort each batch by length and run it in parts of so many. */
  split?: number;
  /** Answer at once, without a model. */
  noop?: boolean;
}

interface RunningPeer extends Target {
  stop(): Promise<void>;
}

/** Some of them fail to start now and then. */
const TRIES = 2;

/** The inference servers that Millrace is compared with, as they lie in a folder of their own. */
export class Peers {
  private constructor(
    private readonly bench: Bench,
    private readonly specs: Record<string, PeerSpec>,
    private readonly model: { modelFile: string; tokenizerFile: string },
    private readonly load: SentenceLoad,
  ) {}

  /** With the very model file that we serve. @throws Error when they are not there. */
  static async open(bench: Bench, { modelFile, files }: PreparedModel, load: SentenceLoad): Promise<Peers> {
    const path = join(bench.options.peersDir, 'peers.json');
    const text = await readFile(path, 'utf8').catch(() => {
      throw new Error(
        `The peers to compare with are not there: ${path} can't be read. Say where they are by --peers DIR or MILLRACE_PEERS.`,
      );
    });
    const specs = JSON.parse(text) as Record<string, PeerSpec>;
    return new Peers(bench, specs, { modelFile, tokenizerFile: files['tokenizer.json'] ?? '' }, load);
  }

  get names(): string[] {
    return Object.keys(this.specs);
  }

  /** Starts one and waits until it answers; the first time that installs it. */
  private async start(name: string, config: PeerConfig = {}): Promise<RunningPeer> {
    for (let attempt = 1; ; attempt++) {
      const port = await freePort();
      const command = this.#command(name, port, config);
      try {
        const line = await command.says(/ is ready at /);
        return {
          url: line.slice(line.lastIndexOf(' ') + 1),
          pids: { server: command.pid },
          itemsPerRequest: 1,
          ...this.#requests(name, config),
          stop: () => command.stop(),
        };
      } catch (error) {
        await command.stop();
        if (attempt >= TRIES) throw new Error(`The peer ${name} did not start: ${(error as Error).message}`);
      }
    }
  }

  /** Starts one, works with it, and ends it. */
  async use<T>(name: string, config: PeerConfig, work: (peer: Target) => Promise<T>): Promise<T> {
    const { stop, ...target } = await this.start(name, config);
    try {
      return await work(target);
    } finally {
      await stop();
    }
  }

  #command(name: string, port: number, { workers, maxBatch, split, noop }: PeerConfig): KeptCommand {
    const { modelFile, tokenizerFile } = this.model;
    const args = [
      ...[name, '--model', modelFile, '--tokenizer', tokenizerFile, '--port', String(port)],
      ...(workers === undefined ? [] : ['--workers', String(workers)]),
      ...(maxBatch === undefined ? [] : ['--max-batch', String(maxBatch)]),
      ...(split === undefined ? [] : ['--split', String(split)]),
      ...(noop ? ['--noop'] : []),
    ];
    const { peersDir, cacheDir } = this.bench.options;
    // Where the peers lie may not be writable.
    const env = { PEERS_CACHE: join(cacheDir, 'peers'), ...process.env };
    return new KeptCommand(this.bench, join(peersDir, 'run'), args, env);
  }

  #requests(name: string, { noop }: PeerConfig): { bodies: string[]; check: AnswerCheck | undefined } {
    const spec = this.specs[name];
    if (!spec) throw new Error(`there is no peer ${name}`);
    const { sentences, vectors } = this.load;
    const body = JSON.stringify(spec.body);
    const bodies = sentences.map((text) => body.replace('"$TEXT"', () => JSON.stringify(text)));
    return { bodies, check: noop ? undefined : answerCheck(sentences, vectors, 1, spec.answer) };
  }
}
