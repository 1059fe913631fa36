import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bench } from '../run/scenario.js';
import type { PeerConfig, Peers } from './peers.js';
import { closedPeak } from './sustained.js';

/** What anyone could try by hand; the best of it is each peer's best. */
const SPLITS_AND_BATCHES: readonly PeerConfig[] = [
  { maxBatch: 32, split: 8 },
  { maxBatch: 32, split: 4 },
  { maxBatch: 32, split: 16 },
  { maxBatch: 64, split: 8 },
  { maxBatch: 64, split: 4 },
  { maxBatch: 16, split: 8 },
  { maxBatch: 8, split: 0 },
  { maxBatch: 4, split: 0 },
];
const WORKERS = [1, 3];
const SECONDS = 4;
const WARM_UP_SECONDS = 2;

export interface Best {
  config: PeerConfig;
  itemsPerSecond: number;
}

export type Sweep = Record<string, Best>;

/**
 * The best configuration of each peer. A sweep takes a quarter of an hour, so what was found for this model
 * is kept, and used again.
 */
export async function sweepPeers(bench: Bench, peers: Peers, modelSha256: string): Promise<Sweep> {
  const file = join(bench.options.cacheDir, `peers-sweep-${modelSha256.slice(0, 16)}.json`);
  const kept = JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) as Sweep;
  if (peers.names.every((name) => kept[name])) {
    bench.say(`Peers' best configurations as found before; delete ${file} to look for them again.`);
    return kept;
  }
  const sweep: Sweep = {};
  for (const name of peers.names) {
    let best: Best = { config: {}, itemsPerSecond: 0 };
    const attempt = async (config: PeerConfig): Promise<void> => {
      const itemsPerSecond = await rateOf(bench, peers, name, config);
      bench.say(`  ${name} ${JSON.stringify(config)}: ${itemsPerSecond.toFixed(0)} sentences/s`);
      if (itemsPerSecond > best.itemsPerSecond) best = { config, itemsPerSecond };
    };
    for (const config of SPLITS_AND_BATCHES) await attempt(config);
    const { config } = best;
    for (const workers of WORKERS) await attempt({ ...config, workers });
    if (best.itemsPerSecond === 0) throw new Error(`No configuration of the peer ${name} answered rightly.`);
    sweep[name] = best;
  }
  await writeFile(file, JSON.stringify(sweep, undefined, 2));
  return sweep;
}

/** 0 for a configuration that does not start, or does not answer. */
async function rateOf(bench: Bench, peers: Peers, name: string, config: PeerConfig): Promise<number> {
  try {
    const load = await peers.use(name, config, (peer) =>
      closedPeak(bench, peer, { seconds: SECONDS, warmUpSeconds: WARM_UP_SECONDS }),
    );
    return load.wrong === 0 ? load.itemsPerSecond : 0;
  } catch (error) {
    bench.say(`  ${(error as Error).message.split('\n').at(-1)}`);
    return 0;
  }
}
