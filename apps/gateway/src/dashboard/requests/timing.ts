import { SPANS, type SpanName, type Stamps, spans } from '@millrace/shared';
import { type Html, html } from '../html.js';
import type { PartView } from './find-request.js';

const WIDTH = 1000;
/** What takes no time to speak of is still seen. */
const LEAST_WIDTH = 3;

/** Before it was enqueued, a request that was scheduled waited for its time. */
const LEFT_OUT: SpanName = 'admit';
/** All that a worker did, where nothing tells its stages apart. */
const WORKER = 'worker';

interface Segment {
  name: string;
  ms: number;
}

export interface Timing {
  segments: Segment[];
  totalMs: number;
}

/** What a part's time went to; of one whose reply is gone, as far as its job tells. */
export function timingOf({ reply, job, data }: PartView): Timing | undefined {
  const stamps: Stamps = reply?.stamps ?? {
    ...data?.stamps,
    ...(job?.processedOn ? { fetched: job.processedOn } : {}),
  };
  const segments: Segment[] = spans(stamps).filter(({ name }) => name !== LEFT_OUT);
  if (!reply && job?.processedOn && job.finishedOn) {
    segments.push({ name: WORKER, ms: Math.max(0, job.finishedOn - job.processedOn) });
  }
  if (segments.length === 0) return undefined;
  return { segments, totalMs: segments.reduce((sum, { ms }) => sum + ms, 0) };
}

/** A bar that is as long as the part took, of the longest, and the same in numbers. */
export function timingBar({ segments }: Timing, longestMs: number): Html {
  let x = 0;
  const rects = segments.map(({ name, ms }) => {
    const width = Math.max(LEAST_WIDTH, (ms / Math.max(longestMs, 1e-3)) * WIDTH);
    const rect = html`<rect class="${name}" x="${x.toFixed(1)}" width="${width.toFixed(1)}" height="12"/>`;
    x += width;
    return rect;
  });
  const text = segments.map(({ name, ms }) => `${name}\u00a0${shortMs(ms)}`).join('\u00a0· ');
  return html`<svg class="bar" viewBox="0 0 ${WIDTH} 12" preserveAspectRatio="none" aria-hidden="true">${rects}</svg>
<small>${text}\u00a0ms</small>`;
}

/** What the colours of the bars mean: of those that are there, in the order of time. */
export function legend(timings: readonly (Timing | undefined)[]): Html {
  const drawn = new Set(timings.flatMap((timing) => timing?.segments.map(({ name }) => name) ?? []));
  const names = [...SPANS.map(({ name }) => name), WORKER].filter((name) => drawn.has(name));
  if (names.length === 0) return html``;
  return html`<ul class="legend" aria-hidden="true">${names.map(
    (name) =>
      html`<li><small><svg class="swatch" viewBox="0 0 12 12"><rect class="${name}" width="12" height="12"/></svg>${name}</small></li>`,
  )}</ul>`;
}

export function shortMs(ms: number): string {
  return ms < 10 ? ms.toFixed(2) : ms.toFixed(ms < 1000 ? 1 : 0);
}
