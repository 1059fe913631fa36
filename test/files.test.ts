import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import OpenAI, { BadRequestError, NotFoundError, toFile } from 'openai';
import { makeApiKey } from '#gateway/admission/api-keys.js';
import { Cluster } from './support/cluster.js';

const MIB = 1024 * 1024;
const LARGE_BYTES = 200 * MIB;
/** What a gateway may grow by while a large file goes through it. */
const MOST_GROWTH = LARGE_BYTES / 3;
const LINES = '{"custom_id":"1","method":"POST","url":"/v1/embeddings","body":{}}\n'.repeat(100);

describe("OpenAI's client and files", () => {
  const alice = makeApiKey('alice', ['infer', 'jobs']);
  const bob = makeApiKey('bob', ['infer', 'jobs']);
  let cluster: Cluster;
  let client: OpenAI;
  let stranger: OpenAI;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-large-'));
    const env = { MILLRACE_API_KEYS: [alice.entry, bob.entry].join(',') };
    cluster = await Cluster.start({ models: ['identity'], gateways: 2, env });
    const clientOf = (key: string, url: string): OpenAI =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
    client = clientOf(alice.key, cluster.url);
    stranger = clientOf(bob.key, cluster.gateways[1]?.url ?? '');
  });
  after(async () => {
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  it('creates, retrieves, lists, reads and deletes them', async () => {
    const file = await toFile(Buffer.from(LINES), 'lines.jsonl');
    const created = await client.files.create({
      file,
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 7200 },
    });
    expect(created).to.include({
      object: 'file',
      bytes: LINES.length,
      filename: 'lines.jsonl',
      purpose: 'batch',
      status: 'processed',
    });
    expect((created.expires_at ?? 0) - created.created_at).to.be.within(7199, 7201);
    expect(await client.files.retrieve(created.id)).to.deep.equal(created);
    const second = await client.files.create({ file, purpose: 'batch' });
    const all: string[] = [];
    for await (const { id } of client.files.list({ limit: 1, order: 'asc' })) all.push(id);
    expect(all).to.have.members([created.id, second.id]);
    expect(await (await client.files.content(created.id)).text()).to.equal(LINES);
    expect(await client.files.delete(created.id)).to.deep.equal({
      id: created.id,
      object: 'file',
      deleted: true,
    });
    const gone = await client.files.retrieve(created.id).catch((error: unknown) => error);
    expect(gone).to.be.instanceOf(NotFoundError).and.to.include({ code: 'file_not_found' });
    await client.files.delete(second.id);
  });

  it('is told what is wrong with them', async () => {
    const file = await toFile(Buffer.from(LINES), 'lines.jsonl');
    const wrong = await client.files.create({ file, purpose: 'fine-tune' }).catch((error: unknown) => error);
    expect(wrong).to.be.instanceOf(BadRequestError).and.to.include({ param: 'purpose' });
  });

  it('sees another key’s nowhere, also at another gateway', async () => {
    const file = await toFile(Buffer.from(LINES), 'lines.jsonl');
    const { id } = await client.files.create({ file, purpose: 'batch' });
    for (const ask of [
      () => stranger.files.retrieve(id),
      () => stranger.files.content(id),
      () => stranger.files.delete(id),
    ]) {
      expect(await ask().catch((error: unknown) => error)).to.be.instanceOf(NotFoundError);
    }
    expect((await stranger.files.list()).data).to.deep.equal([]);
    expect((await client.files.retrieve(id)).id).to.equal(id);
    await client.files.delete(id);
  });

  it('sends and gets a large one through a gateway that holds little of it', async function () {
    this.timeout(120_000);
    const path = join(folder, 'large.bin');
    const sha256 = await writeLarge(path);
    const { pid } = cluster.gateways[0] ?? { pid: 0 };
    const memory = await MemoryWatch.of(pid);
    const created = await client.files.create({ file: createReadStream(path), purpose: 'batch' });
    expect(created.bytes).to.equal(LARGE_BYTES);
    const content = await client.files.content(created.id);
    const hash = createHash('sha256');
    for await (const chunk of content.body ?? []) hash.update(chunk as Uint8Array);
    expect(hash.digest('hex')).to.equal(sha256);
    expect(memory.stop(), 'bytes that the gateway grew by').to.be.below(MOST_GROWTH);
    await client.files.delete(created.id);
  });
});

/** @returns its SHA-256. */
async function writeLarge(path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, 'w');
  for (let at = 0; at < LARGE_BYTES; at += MIB) {
    const chunk = randomBytes(MIB);
    hash.update(chunk);
    await file.write(chunk);
  }
  await file.close();
  return hash.digest('hex');
}

/** How much a process grows. */
class MemoryWatch {
  #most = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly pid: number,
    private readonly before: number,
  ) {}

  static async of(pid: number): Promise<MemoryWatch> {
    const watch = new MemoryWatch(pid, await residentBytes(pid));
    watch.#timer = setInterval(() => void watch.#look(), 50);
    return watch;
  }

  stop(): number {
    clearInterval(this.#timer);
    return Math.max(0, this.#most - this.before);
  }

  async #look(): Promise<void> {
    this.#most = Math.max(this.#most, await residentBytes(this.pid));
  }
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
