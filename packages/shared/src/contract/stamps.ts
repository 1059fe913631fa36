/**
 * The stages of a request, in the order they happen. Each stamps its end once, in epoch milliseconds of
 * Redis's clock, so that stamps of different machines can be subtracted. `Server-Timing`, metrics, traces
 * and the profiler all read these stamps; nothing measures a stage a second time.
 *
 * `batched` is when an item's group was formed for a session: inputs are prepared while the batch window is
 * still open, so that a session never waits for preprocessing.
 */
export const STAGES = [
  'received',
  'enqueued',
  'fetched',
  'preprocessed',
  'batched',
  'inferred',
  'postprocessed',
  'replied',
] as const;

export type Stage = (typeof STAGES)[number];
export type Stamps = Partial<Record<Stage, number>>;

/** What a span between two stamps is called where a person reads it. */
export const SPANS = [
  { name: 'admit', from: 'received', to: 'enqueued' },
  { name: 'queue', from: 'enqueued', to: 'fetched' },
  { name: 'preprocess', from: 'fetched', to: 'preprocessed' },
  { name: 'window', from: 'preprocessed', to: 'batched' },
  { name: 'infer', from: 'batched', to: 'inferred' },
  { name: 'postprocess', from: 'inferred', to: 'postprocessed' },
  { name: 'reply', from: 'postprocessed', to: 'replied' },
] as const satisfies readonly { name: string; from: Stage; to: Stage }[];

export type SpanName = (typeof SPANS)[number]['name'];

/** Milliseconds of each span whose two stamps are there, never below zero (clocks differ by parts of a ms). */
export function spans(stamps: Stamps): { name: SpanName; ms: number }[] {
  const found: { name: SpanName; ms: number }[] = [];
  for (const { name, from, to } of SPANS) {
    const start = stamps[from];
    const end = stamps[to];
    if (start !== undefined && end !== undefined) found.push({ name, ms: Math.max(0, end - start) });
  }
  return found;
}
