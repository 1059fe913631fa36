import { setTimeout as sleep } from 'node:timers/promises';
import type { Step } from '../steps.js';
import type { Patience } from './patience.js';
import { Rate } from './rate.js';
import type { Batch, BulkServer } from './server.js';
import { countText, rateText, timeText } from './texts.js';

const FIRST_POLL_MS = 100;
/** How often the server tells anew how far a batch is, in ms. */
const POLL_MS = 1000;
const ENDED = new Set(['completed', 'failed', 'expired', 'cancelled']);

/** What states read as that a batch goes through. */
const LABELS: Record<string, string> = {
  validating: 'waiting',
  in_progress: 'running',
  finalizing: 'finishing',
  cancelling: 'cancelling',
};

/** Asks for a batch until it has ended, showing how far it is. @throws what the asking fails with. */
export async function follow(
  server: BulkServer,
  id: string,
  { patience, signal, show }: { patience: Patience; signal: AbortSignal; show: (step: Step) => void },
): Promise<Batch> {
  const rate = new Rate();
  for (let wait = FIRST_POLL_MS; ; wait = Math.min(POLL_MS, wait * 2)) {
    const batch = await patience.with(() => server.batch(id));
    const { completed, failed } = batch.request_counts;
    rate.add(performance.now(), completed + failed);
    if (ENDED.has(batch.status)) {
      // So that a bar is left standing as far as the batch came.
      if (completed + failed > 0) show({ ...stepOf(batch, undefined), label: LABELS.in_progress ?? '' });
      return batch;
    }
    show(stepOf(batch, rate.perSecond));
    await sleep(wait, undefined, { signal });
  }
}

/** How a batch that has not ended reads. */
export function stepOf({ status, errors, request_counts }: Batch, perSecond: number | undefined): Step {
  const { total, completed, failed } = request_counts;
  const done = completed + failed;
  const fraction = total === 0 ? 0 : done / total;
  const [heldUp] = errors?.data ?? [];
  if (heldUp) return { label: 'held up', fraction, detail: heldUp.message };
  const label = LABELS[status] ?? status;
  if (total === 0) return { label, fraction };
  const parts = [`${countText(done)}/${countText(total)}`];
  if (failed > 0) parts.push(`${countText(failed)} failed`);
  if (perSecond !== undefined && status === 'in_progress') {
    parts.push(rateText(perSecond), `${timeText((total - done) / perSecond)} left`);
  }
  return { label, fraction, detail: parts.join(', ') };
}
