import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bench } from '../run/scenario.js';

const file = ({ options }: Bench): string => join(options.cacheDir, 'sustained-rate.json');

/** Keeps what `slo` found for the scenarios that load at a share of it. */
export async function rememberRate(bench: Bench, requestsPerSecond: number): Promise<void> {
  await writeFile(file(bench), JSON.stringify({ requestsPerSecond }));
}

/** The rate that `slo` found last on this machine, if it ran. */
export async function rememberedRate(bench: Bench): Promise<number | undefined> {
  try {
    const { requestsPerSecond } = JSON.parse(await readFile(file(bench), 'utf8'));
    return typeof requestsPerSecond === 'number' ? requestsPerSecond : undefined;
  } catch {
    return undefined;
  }
}
