import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { downloadResumable, partSize } from './download.js';
import { ConnectionCut, type Opened, openFollowing, parseUrl } from './http.js';
import { type FetchContext, type FileSource, SourceFailure, type WantedFile } from './types.js';
import { placeVerified } from './verify.js';

const DEFAULT_ENDPOINT = 'https://huggingface.co';
const YES = new Set(['1', 'ON', 'YES', 'TRUE']);

export interface HubRepo {
  repo: string;
  revision: string;
}

/** The Hugging Face hub, or what HF_ENDPOINT names; obeys its own client's variables. */
export function hubSource(hub: HubRepo, env: NodeJS.ProcessEnv): FileSource {
  return {
    label: `the Hugging Face hub (${parseUrl(env.HF_ENDPOINT || DEFAULT_ENDPOINT)?.host ?? 'HF_ENDPOINT'})`,
    async fetch(files, context) {
      const failures = new Map<string, string>();
      let off = isOn(env.HF_HUB_OFFLINE) ? 'HF_HUB_OFFLINE is set' : undefined;
      for (const file of files) {
        if (off === undefined) {
          try {
            await fetchFile(hub, file, context);
          } catch (error) {
            if (!(error instanceof SourceFailure)) throw error;
            failures.set(file.name, error.message);
            if (error.unreachable) off = error.message;
          }
        } else {
          failures.set(file.name, off);
        }
      }
      return failures;
    },
  };
}

/** The address of a file, for a person's browser and for us. */
export function hubUrl({ repo, revision }: HubRepo, file: string, env: NodeJS.ProcessEnv): URL {
  const endpoint = parseUrl(env.HF_ENDPOINT || DEFAULT_ENDPOINT);
  if (endpoint === undefined || !/^https?:$/.test(endpoint.protocol)) {
    throw new SourceFailure('HF_ENDPOINT is not a web address', { unreachable: true });
  }
  if (endpoint.username || endpoint.password) {
    throw new SourceFailure('HF_ENDPOINT must not hold a password: use HF_TOKEN', { unreachable: true });
  }
  const path = file.split('/').map(encodeURIComponent).join('/');
  const base = endpoint.pathname.replace(/\/+$/, '');
  return new URL(`${base}/${repo}/resolve/${encodeURIComponent(revision)}/${path}`, endpoint.origin);
}

async function fetchFile(hub: HubRepo, wanted: WantedFile, context: FetchContext): Promise<void> {
  const url = hubUrl(hub, wanted.name, context.env);
  const token = await readToken(context.env);
  const openFrom = (offset: number, etag: string | undefined) =>
    openAt(url, offset, etag, token, wanted, context);
  const resumed = (await partSize(wanted, context.workDir)) > 0;
  const onBytes: FetchContext['onBytes'] = (file, bytes) => context.onBytes(file, bytes, url.host);
  const download = async () => {
    const part = await downloadResumable(wanted, openFrom, { ...context, onBytes });
    await placeVerified(part, wanted, context.workDir);
  };
  try {
    await download();
  } catch (error) {
    // The fault may lie in what an earlier process left: once more from the first byte.
    if (!(error instanceof SourceFailure) || error.unreachable || !resumed) throw error;
    if ((await partSize(wanted, context.workDir)) > 0) throw error;
    await download();
  }
}

async function openAt(
  url: URL,
  offset: number,
  etag: string | undefined,
  token: string | undefined,
  wanted: WantedFile,
  { limits, signal }: FetchContext,
): Promise<Opened> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity', 'user-agent': 'millrace' };
  if (offset > 0) headers.range = `bytes=${offset}-`;
  if (offset > 0 && etag !== undefined) headers['if-range'] = etag;
  const open = async (bearer: string | undefined) =>
    openFollowing(url, {
      headers,
      token: bearer,
      ...limits,
      signal,
      onAnswer: (answer) => compareLinked(answer, wanted),
    });
  let opened = await open(token);
  if (opened.answer.status === 401 && token !== undefined) {
    // The hub refuses even a public file to a token that has expired.
    opened.close();
    opened = await open(undefined);
  }
  const { status } = opened.answer;
  if (status === 200 || status === 206 || status === 416) return opened;
  opened.close();
  if (status === 429 || status >= 500) throw new ConnectionCut(`it answered ${status}`);
  throw new SourceFailure(refusal(status, token !== undefined));
}

/** What the hub says of a large file before it redirects to it: a wrong one needn't be downloaded. */
function compareLinked(answer: Response, wanted: WantedFile): void {
  const size = answer.headers.get('x-linked-size');
  if (size !== null && Number(size) !== wanted.bytes) {
    throw new SourceFailure(`it has another file, with ${size} bytes instead of ${wanted.bytes}`);
  }
  const sha256 = /^"?([0-9a-f]{64})"?$/.exec(answer.headers.get('x-linked-etag') ?? '')?.[1];
  if (sha256 !== undefined && sha256 !== wanted.sha256) {
    throw new SourceFailure(`it has another file, with the sha256 ${sha256}`);
  }
}

function refusal(status: number, withToken: boolean): string {
  if (status === 401) {
    return `it answered 401: ${withToken ? 'the token is not valid' : 'no such repository, or it needs a token in HF_TOKEN'}`;
  }
  if (status === 403) return 'it answered 403: the token in HF_TOKEN may not read this repository';
  if (status === 404) return 'it answered 404: no such repository, revision or file';
  return `it answered ${status}`;
}

/** The token of HF_TOKEN, or of the file that the hub's own login writes. */
async function readToken(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (isOn(env.HF_HUB_DISABLE_IMPLICIT_TOKEN)) return undefined;
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache');
  const file = env.HF_TOKEN_PATH || join(env.HF_HOME || join(cache, 'huggingface'), 'token');
  const text = env.HF_TOKEN || (await readFile(file, 'utf8').catch(() => ''));
  // Anything else couldn't stand in a header.
  return /^[\x21-\x7e]+$/.exec(text.trim())?.[0];
}

function isOn(value: string | undefined): boolean {
  return YES.has((value ?? '').toUpperCase());
}
