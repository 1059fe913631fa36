import { Cluster, type ClusterOptions } from '#test/support/cluster.js';
import type { Bench } from '../run/scenario.js';

export interface Served {
  /** The gateway's base URL. */
  url: string;
  /** HOST:PORT of its gRPC door. */
  grpc: string;
  /** The worker's health and metrics. */
  workerUrl: string;
  redisUrl: string;
  /** Whose CPU a load tells of. */
  pids: Record<string, number>;
  /** Ends it before the scenario does. */
  stop(): Promise<void>;
}

/** Millrace as real processes: a Redis, a gateway and a worker, ended with the scenario. */
export async function serve(bench: Bench, options: ClusterOptions): Promise<Served> {
  const cluster = await Cluster.start({
    ...options,
    env: { MILLRACE_DATA_DIR: bench.dataDir, ...options.env },
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= cluster.stop();
    return stopped;
  };
  bench.own(stop);
  const [gateway] = cluster.gateways;
  const [worker] = cluster.workers;
  if (!gateway || !worker) throw new Error('a cluster without processes');
  return {
    url: gateway.url,
    grpc: gateway.grpc ?? '',
    workerUrl: worker.url,
    redisUrl: cluster.redis.url,
    pids: { gateway: gateway.pid, worker: worker.pid, redis: cluster.redis.pid },
    stop,
  };
}

export const predictUrl = ({ url }: Pick<Served, 'url'>, model: string): string =>
  `${url}/v1/models/${model}/predict`;
