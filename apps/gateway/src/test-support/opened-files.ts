import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, loadSettings, RedisClock, type SettingFlags } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { FileRecord } from '../files/file-record.js';
import { Files } from '../files/files.js';
import { testRedis, uniqueName } from './redis.js';
import { listed, pieces } from './store-conformance.js';

/** Files over the test's Redis, each opening with a storage of its own unless it names one. */
export class OpenedFiles {
  readonly clock = new RedisClock();
  redis = {} as Redis;
  folder = '';
  /** One opening with the usual settings. */
  files = {} as Files;

  async start(): Promise<void> {
    this.redis = testRedis();
    await this.clock.start(this.redis);
    this.folder = await mkdtemp(join(tmpdir(), 'millrace-files-'));
    this.files = this.open();
  }

  async stop(): Promise<void> {
    this.clock.stop();
    this.redis.disconnect();
    await rm(this.folder, { recursive: true });
  }

  readonly open = (flags: SettingFlags = {}, redis = this.redis): Files => {
    const settings = loadSettings({}, { filesUrl: join(this.folder, uniqueName('store')), ...flags });
    return new Files({ redis, clock: this.clock, settings, logger: createLogger('silent', {}) });
  };

  readonly create = (
    owner: string,
    content: string | Uint8Array,
    more: { idempotencyKey?: string; expiresAt?: number; filename?: string } = {},
    at = this.files,
  ): Promise<FileRecord> =>
    at.create(
      owner,
      { filename: 'lines.jsonl', purpose: 'batch', ...more },
      pieces(Buffer.from(content as string)),
    );

  /** Waits until it is so late (epoch ms of Redis's clock). */
  readonly untilPast = async (at: number): Promise<void> => {
    while (this.clock.now() < at) await new Promise((resolve) => setTimeout(resolve, 10));
  };
}

/** An owner that has nothing yet. */
export function newOwner(): string {
  return uniqueName('owner');
}

/** What lies in the storage. */
export async function keysOf({ store }: Files): Promise<string[]> {
  return (await listed(store)).map(({ key }) => key);
}
