import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type KeyScope, PRIORITIES } from '@millrace/shared';
import { expect } from 'chai';
import { makeApiKey } from '../admission/api-keys.js';
import type { Gateway } from '../gateway.js';
import { type Answer, get, Harness, post } from './harness.js';
import { identityModel, textModel } from './models.js';
import { uniqueName, until } from './redis.js';
import { embeddingOf, type StandInWorker } from './stand-in-worker.js';

const SCOPES: KeyScope[] = ['infer', 'jobs'];
const ENDED = new Set(['completed', 'failed', 'expired', 'cancelled']);
/** Thousands of lines on a busy machine, in ms. */
const ENDS_WITHIN_MS = 50_000;

type Key = ReturnType<typeof makeApiKey>;

export interface Batch {
  id: string;
  status: string;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: { total: number; completed: number; failed: number };
  errors: { data: { code: string; message: string }[] } | null;
  [field: string]: unknown;
}

export interface OutputLine {
  id: string;
  custom_id: string | null;
  line: number;
  response: { status_code: number; request_id: string; body: Record<string, unknown> } | null;
  error: { code: string; message: string } | null;
}

/** Two gateways that run batches, a folder for their files, a worker for texts and one for tensors, and who asks. */
export class BatchesDoor {
  readonly harness = new Harness();
  readonly texts = uniqueName('text');
  readonly tensors = uniqueName('tensors');
  readonly alice: Key = makeApiKey(uniqueName('alice'), SCOPES);
  readonly bob: Key = makeApiKey(uniqueName('bob'), SCOPES);
  folder = '';
  gateway = {} as Gateway;
  other = {} as Gateway;
  /** The one for texts; the text `bad` fails. */
  worker = {} as StandInWorker;
  readonly #made = new Set<string>();
  /** Bulk work is answered once this resolves. */
  #held = Promise.resolve();
  #letGo: () => void = () => undefined;

  async open(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'millrace-batches-'));
    this.worker = await this.harness.worker(textModel(this.texts), {
      before: ({ priority }) => (priority === PRIORITIES.bulk ? this.#held : undefined),
      verdict: (text) =>
        text === 'bad'
          ? { status: 'failed', code: 'inference_failed', message: 'It can not be run.' }
          : { status: 'ok', tokens: text.length },
    });
    await this.harness.worker(identityModel(this.tensors));
    this.gateway = await this.startGateway();
    this.other = await this.startGateway();
  }

  /** What is left of its batches ends first: the gateways of another test file would go on with them. */
  async close(): Promise<void> {
    this.letGo();
    try {
      for (const id of this.#made) {
        await this.turn(id, 'cancel');
        await this.ended(id);
      }
    } finally {
      await this.harness.release();
      await rm(this.folder, { recursive: true, force: true });
    }
  }

  readonly startGateway = (): Promise<Gateway> =>
    this.harness.gateway({
      apiKeys: [this.alice.entry, this.bob.entry],
      filesUrl: this.folder,
      maxBodyBytes: 20_000,
      batchItems: 64,
    });

  /** Keeps the worker from answering texts of batches, until {@link letGo}. */
  readonly hold = (): void => {
    this.#held = new Promise((resolve) => {
      this.#letGo = resolve;
    });
  };

  readonly letGo = (): void => this.#letGo();

  readonly as = ({ key }: Pick<Key, 'key'>): { authorization: string } => ({
    authorization: `Bearer ${key}`,
  });

  /** Sends a file as Alice. @returns its id. */
  readonly upload = async (content: string | Buffer): Promise<string> => {
    const body = new FormData();
    body.set('purpose', 'batch');
    body.set('file', new Blob([new Uint8Array(Buffer.from(content))]), 'lines.jsonl');
    const init = { method: 'POST', headers: this.as(this.alice), body };
    const response = await fetch(`${this.gateway.url}/v1/files`, init);
    expect(response.status).to.equal(200);
    return ((await response.json()) as { id: string }).id;
  };

  /** Asks for a batch as Alice. */
  readonly make = async (
    fields: Record<string, unknown>,
    headers: Record<string, string> = {},
  ): Promise<Answer<Batch>> => {
    const answer = await post<Batch>(
      `${this.gateway.url}/v1/batches`,
      { endpoint: '/v1/embeddings', completion_window: '24h', ...fields },
      { ...this.as(this.alice), ...headers },
    );
    if (answer.status === 200) this.#made.add(answer.body.id);
    return answer;
  };

  readonly read = async (id: string, at = this.gateway): Promise<Batch> =>
    (await get<Batch>(`${at.url}/v1/batches/${id}`, this.as(this.alice))).body;

  readonly turn = (
    id: string,
    what: 'cancel' | 'pause' | 'resume',
    key = this.alice,
  ): Promise<Answer<Batch & { error?: { code: string } }>> =>
    post(`${this.gateway.url}/v1/batches/${id}/${what}`, '', this.as(key));

  /** The batch, once it has ended. */
  readonly ended = async (id: string, at = this.gateway): Promise<Batch> => {
    const hasEnded = async (): Promise<boolean> => ENDED.has((await this.read(id, at)).status);
    await until('the batch has ended', hasEnded, ENDS_WITHIN_MS);
    return await this.read(id, at);
  };

  /** Waits until lines of it are run. */
  readonly begun = (id: string): Promise<void> =>
    until('the batch is run', async () => (await this.read(id)).status === 'in_progress', ENDS_WITHIN_MS);

  /** What a file of answers says; nothing where there is none. */
  readonly linesOf = async (file: string | null, at = this.gateway): Promise<OutputLine[]> => {
    if (file === null) return [];
    const response = await fetch(`${at.url}/v1/files/${file}/content`, { headers: this.as(this.alice) });
    expect(response.status).to.equal(200);
    const text = await response.text();
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as OutputLine]));
  };

  /** Runs a batch of these lines to its end. */
  readonly run = async (
    content: string | Buffer,
  ): Promise<{ batch: Batch; output: OutputLine[]; errors: OutputLine[] }> => {
    const { body } = await this.make({ input_file_id: await this.upload(content) });
    const batch = await this.ended(body.id);
    const output = await this.linesOf(batch.output_file_id);
    return { batch, output, errors: await this.linesOf(batch.error_file_id) };
  };

  /** A line for the batch's endpoint. */
  readonly embedLine = (id: string, input: string): string =>
    JSON.stringify({ custom_id: id, body: { model: this.texts, input } });

  /** Lines that {@link expectAll} knows the answers of. */
  readonly many = (count: number): string =>
    Array.from({ length: count }, (_, i) => `${this.embedLine(`n${i}`, `text ${i}`)}\n`).join('');
}

/** Each of so many lines was answered, once and in its place. */
export function expectAll(output: readonly OutputLine[], count: number): void {
  expect(output.map(({ custom_id }) => custom_id)).to.deep.equal(
    Array.from({ length: count }, (_, i) => `n${i}`),
  );
  for (const [i, line] of output.entries()) {
    const { body } = line.response as unknown as { body: { data: [{ embedding: number[] }] } };
    const [{ embedding }] = body.data;
    const expected = embeddingOf(`text ${i}`);
    // As many digits as the model says.
    for (const [at, value] of embedding.entries()) expect(value).to.be.closeTo(expected[at] as number, 1e-6);
  }
}
