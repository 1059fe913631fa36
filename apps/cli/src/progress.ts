import cliProgress, { type SingleBar } from 'cli-progress';
import type { Host } from './host.js';
import type { Progress } from './messages.js';

export interface ProgressView {
  show(progress: Omit<Progress, 'type'>): void;
  close(): void;
}

/** Without a terminal, a step that takes long is said again this often. */
const LINE_EVERY_MS = 5000;
/** With the bar and its percents, a line of 80 columns. */
const LABEL_WIDTH = 26;
const BAR_WIDTH = 20;
const DETAIL_WIDTH = 25;

/** How a step reads to a person; one not listed reads as it is called. */
const STEP_TEXT: Record<string, string> = { wait: 'waiting', fetch: 'fetching', build: 'building' };

function labelOf({ model, step }: Pick<Progress, 'model' | 'step'>): string {
  return `${model}: ${STEP_TEXT[step] ?? step}`;
}

/** A text in so many columns, its end cut off where it is longer. */
export function fitted(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 3)}...` : text.padEnd(width);
}

/** Shows progress the way its reader can use: to a parent process, as a bar, or in a plain line now and then. */
export function openProgress(host: Host): ProgressView {
  const { parent } = host;
  if (parent) return { show: (progress) => parent.tell({ type: 'progress', ...progress }), close: () => {} };
  return host.isTerminal ? bars() : lines(host.say);
}

/** One bar a step, each left standing when the next begins. */
function bars(): ProgressView {
  let bar: SingleBar | undefined;
  let shown = '';
  const close = () => {
    bar?.stop();
    bar = undefined;
  };
  return {
    show({ model, step, fraction, detail }) {
      const label = labelOf({ model, step });
      const details = fitted(detail ?? '', DETAIL_WIDTH);
      if (label !== shown) {
        close();
        shown = label;
        // What is done as soon as it begins needs no bar: a start from the cache stays quiet.
        if (fraction >= 1) return;
        bar = new cliProgress.SingleBar(
          { format: '{label} {bar} {percentage}% {detail}', barsize: BAR_WIDTH, hideCursor: true },
          cliProgress.Presets.shades_classic,
        );
        bar.start(1, fraction, { label: fitted(label, LABEL_WIDTH), detail: details });
      }
      bar?.update(fraction, { detail: details });
    },
    close,
  };
}

function lines(say: (line: string) => void, now: () => number = () => performance.now()): ProgressView {
  let shown = '';
  let shownAt = 0;
  return {
    show({ model, step, fraction, detail }) {
      const label = labelOf({ model, step });
      const isNew = label !== shown;
      if (isNew && fraction >= 1) return;
      if (!isNew && now() - shownAt < LINE_EVERY_MS) return;
      shown = label;
      shownAt = now();
      const percent = fraction > 0 ? ` ${Math.floor(fraction * 100)}%` : '';
      say(`${label}${percent}${detail ? ` (${detail})` : ''}`);
    },
    close: () => {},
  };
}
