import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeApiKey } from '../admission/api-keys.js';
import { LocalStore } from '../files/local-store.js';
import type { Gateway } from '../gateway.js';
import { type Answer, get, Harness } from './harness.js';
import { uniqueName } from './redis.js';
import { listed } from './store-conformance.js';

const MIB = 1024 * 1024;
const BOUNDARY = 'a-boundary-of-tests';

export const LINES = '{"custom_id":"1"}\n'.repeat(1000);
export const FORM = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

/** A part of a form; with a filename it is a file. */
export function part(name: string, value: string, filename?: string): string {
  const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: text/plain`;
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
}

export const PURPOSE = part('purpose', 'batch');
export const FILE = part('file', LINES, 'lines.jsonl');
export const END = `--${BOUNDARY}--\r\n`;

/** A whole form with a file of these bytes. */
export function formOf(bytes: Uint8Array): Buffer {
  const before = PURPOSE + part('file', '', 'bytes.bin').slice(0, -2);
  return Buffer.concat([Buffer.from(before), bytes, Buffer.from(`\r\n${END}`)]);
}

export interface FileBody {
  id: string;
  bytes: number;
  error?: { message: string; param: string; code: string; type: string };
  [field: string]: unknown;
}

type Key = ReturnType<typeof makeApiKey>;

/** A gateway with a folder for files, and who asks it for them. */
export class FilesDoor {
  readonly harness = new Harness();
  readonly alice: Key = makeApiKey(uniqueName('alice'), ['jobs']);
  readonly bob: Key = makeApiKey(uniqueName('bob'), ['jobs']);
  folder = '';
  gateway = {} as Gateway;

  async open(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'millrace-door-'));
    this.gateway = await this.harness.gateway({
      apiKeys: [this.alice.entry, this.bob.entry],
      filesUrl: join(this.folder, 'files'),
      maxFileBytes: 16 * MIB,
      compressFromBytes: 1000,
    });
  }

  async close(): Promise<void> {
    await this.harness.release();
    await rm(this.folder, { recursive: true });
  }

  readonly as = ({ key }: Pick<Key, 'key'>): { authorization: string } => ({
    authorization: `Bearer ${key}`,
  });

  /** Sends a form, as Alice unless the headers say otherwise. */
  readonly send = async (
    body: string | Uint8Array,
    headers: Record<string, string> = {},
    at = this.gateway,
  ): Promise<Answer<FileBody>> => {
    const response = await fetch(`${at.url}/v1/files`, {
      method: 'POST',
      headers: { ...FORM, ...this.as(this.alice), ...headers },
      body: body as string,
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as FileBody };
  };

  readonly file = (path: string, headers: Record<string, string> = {}): Promise<Answer<FileBody>> =>
    get<FileBody>(`${this.gateway.url}/v1/files/${path}`, { ...this.as(this.alice), ...headers });

  readonly content = (id: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
    fetch(`${this.gateway.url}/v1/files/${id}/content`, {
      method,
      headers: { 'accept-encoding': 'identity', ...this.as(this.alice), ...headers },
    });

  /** The head of an upload, for a client that says the rest as it likes. */
  readonly head = (bytes: number): string =>
    `POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${this.alice.key}\r\nContent-Type: ${FORM['content-type']}\r\n` +
    `Content-Length: ${bytes}\r\n\r\n`;

  /** Objects in a storage. */
  readonly stored = async (name = 'files'): Promise<number> =>
    (await listed(new LocalStore(join(this.folder, name)))).length;

  /** Everything under a storage's folder, what is being written too. */
  readonly onDisk = (name = 'files'): Promise<string[]> =>
    readdir(join(this.folder, name), { recursive: true }).catch(() => []);
}
