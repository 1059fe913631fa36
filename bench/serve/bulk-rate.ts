import { setTimeout as sleep } from 'node:timers/promises';
import { readBatch, untilBatchEnded } from '#test/support/batches.js';

const LINES_DONE = /^millrace_gateway_batch_lines_total\{.*\} (\d+)$/gm;
const POLL_MS = 500;

/** Lines that a gateway has ended since it runs, and when that was read, in ms. */
interface Count {
  at: number;
  lines: number;
}

/** Reads how many lines of batches a gateway has ended. */
export async function countLines(gatewayUrl: string): Promise<Count> {
  const text = await (await fetch(`${gatewayUrl}/metrics`)).text();
  const lines = [...text.matchAll(LINES_DONE)].reduce((sum, [, count]) => sum + Number(count), 0);
  return { at: performance.now(), lines };
}

const perSecond = (from: Count, to: Count): number => ((to.lines - from.lines) * 1000) / (to.at - from.at);

/** Lines a second over so many seconds from now on. */
export async function rateOver(gatewayUrl: string, seconds: number): Promise<number> {
  const from = await countLines(gatewayUrl);
  await sleep(seconds * 1000);
  return perSecond(from, await countLines(gatewayUrl));
}

/**
 * Follows a batch to its last line.
 * @param before what was counted before it.
 * @returns its lines a second, from when the first were done to when the last was.
 * @throws Error for a batch that ends otherwise.
 */
export async function followBatch(
  gatewayUrl: string,
  batchId: string,
  before: number,
  total: number,
): Promise<number> {
  let first: Count | undefined;
  let last: Count | undefined;
  for (;;) {
    const now = await countLines(gatewayUrl);
    const done = now.lines - before;
    if (done >= total) {
      if (!first || !last || last.lines === first.lines)
        throw new Error(`${total} lines are too few to measure`);
      // The last one came somewhere between two looks.
      const leftMs = ((before + total - last.lines) * 1000) / perSecond(first, last);
      return perSecond(first, { at: Math.min(now.at, last.at + leftMs), lines: before + total });
    }
    if (done > 0) {
      first ??= now;
      last = now;
    }
    const { status } = await readBatch(gatewayUrl, batchId);
    if (status === 'failed' || status === 'expired') throw new Error(`the batch is ${status}`);
    await sleep(POLL_MS);
  }
}

/** Waits for a batch's files. @throws Error where it is not completed, or lines of it failed. */
export async function outputOf(gatewayUrl: string, batchId: string): Promise<string> {
  const { status, output_file_id, request_counts } = await untilBatchEnded(gatewayUrl, batchId);
  if (status !== 'completed' || request_counts.failed > 0 || output_file_id === null) {
    throw new Error(`the batch is ${status}: ${JSON.stringify(request_counts)}`);
  }
  return output_file_id;
}
