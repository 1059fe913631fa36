import { createLogger, loadSettings, type Settings } from '@millrace/shared';
import { type RunningWorker, startWorker } from '../worker.js';
import { TestGateway } from './gateway.js';
import type { TestModels } from './models.js';
import { useRedis } from './redis.js';

/** What {@link useRedis} gives, and gateways and workers that end after each test as well. */
export function useWorkers() {
  const redis = useRedis();
  return {
    ...redis,
    /** Sends to a model and hears the replies. */
    async gateway(model: string): Promise<TestGateway> {
      const gateway = new TestGateway(model, await redis.connect());
      await gateway.listen(await redis.connect('subscriber'));
      redis.after(() => gateway.close());
      return gateway;
    },
    /** Serves a model of a folder, a simulated one too. `overrides`: settings of this worker. */
    async worker(
      { name, modelsDir, cacheDir }: Omit<TestModels, 'remove'>,
      overrides: Partial<Settings> = {},
    ): Promise<RunningWorker> {
      const settings = loadSettings(
        {},
        {
          redisUrl: redis.url(),
          models: name,
          modelsDir,
          cacheDir,
          dataDir: cacheDir,
          graceMs: 5000,
          allowSimulated: true,
          ...overrides,
        },
      );
      const worker = await startWorker(settings, createLogger('silent', {}));
      redis.after(async () => void (await worker.drain()));
      return worker;
    },
  };
}

/** A worker's metric: its first series whose labels have this in them; 0 where there is none. */
export async function metricOf({ healthUrl }: RunningWorker, name: string, label = ''): Promise<number> {
  const text = await (await fetch(`${healthUrl}/metrics`)).text();
  return Number(new RegExp(`^${name}\\{.*${label}.*\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}
