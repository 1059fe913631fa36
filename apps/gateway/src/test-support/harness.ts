import {
  createLogger,
  loadSettings,
  type ModelDescription,
  Releasers,
  type SettingFlags,
} from '@millrace/shared';
import { type Gateway, startGateway } from '../gateway.js';
import { testRedisUrl } from './redis.js';
import { type StandInOptions, StandInWorker } from './stand-in-worker.js';

/** A gateway and stand-in workers of one test file, released together. */
export class Harness {
  readonly #releasers = new Releasers();

  async worker(model: ModelDescription, options: StandInOptions = {}): Promise<StandInWorker> {
    const worker = await new StandInWorker(model, options).start();
    this.#releasers.push(() => worker.stop());
    return worker;
  }

  async gateway(flags: SettingFlags = {}): Promise<Gateway> {
    const settings = loadSettings(
      {},
      { redisUrl: testRedisUrl(), port: 0, models: [], graceMs: 2000, ...flags },
    );
    const gateway = await startGateway(settings, createLogger('silent', {}));
    this.#releasers.push(() => gateway.close());
    return gateway;
  }

  onRelease(release: () => Promise<void> | void): void {
    this.#releasers.push(release);
  }

  async release(): Promise<void> {
    await this.#releasers.release();
  }
}

export interface Answer<Body> {
  status: number;
  headers: Headers;
  body: Body;
}

/** Posts JSON and reads the JSON that comes back. */
export async function post<Body = Record<string, unknown>>(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer<Body>> {
  const raw = typeof body === 'string' || body instanceof Uint8Array;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: raw ? (body as string) : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

export async function get<Body = Record<string, unknown>>(
  url: string,
  headers: Record<string, string> = {},
): Promise<Answer<Body>> {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}
