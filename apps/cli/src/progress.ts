import type { Host } from './host.js';
import type { Progress } from './messages.js';
import { openSteps } from './steps.js';

export interface ProgressView {
  show(progress: Omit<Progress, 'type'>): void;
  close(): void;
}

const WIDTHS = { label: 26, bar: 20, detail: 25 };

/** How a step reads to a person; one not listed reads as it is called. */
const STEP_TEXT: Record<string, string> = { wait: 'waiting', fetch: 'fetching', build: 'building' };

/** Shows progress the way its reader can use: to a parent process, as a bar, or in a plain line now and then. */
export function openProgress(host: Host): ProgressView {
  const { parent } = host;
  if (parent) return { show: (progress) => parent.tell({ type: 'progress', ...progress }), close: () => {} };
  const view = openSteps(host, WIDTHS);
  return {
    show: ({ model, step, fraction, detail }) =>
      view.show({ label: `${model}: ${STEP_TEXT[step] ?? step}`, fraction, detail }),
    close: view.close,
  };
}
