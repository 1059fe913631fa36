import cliProgress, { type SingleBar } from 'cli-progress';
import type { Host } from './host.js';

/** Something that takes a while, as a person reads it. */
export interface Step {
  label: string;
  /** 0 to 1. */
  fraction: number;
  detail?: string | undefined;
}

export interface StepView {
  show(step: Step): void;
  close(): void;
}

/** Columns of a bar's line; together with the percents it should fit into 80. */
export interface StepWidths {
  label: number;
  bar: number;
  detail: number;
}

/** Without a terminal, a step that takes long is said again this often. */
const LINE_EVERY_MS = 5000;

/** A text in so many columns, its end cut off where it is longer. */
export function fitted(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 3)}...` : text.padEnd(width);
}

/** Shows steps as bars at a terminal, and elsewhere in a plain line now and then. */
export function openSteps(
  { isTerminal, say }: Pick<Host, 'isTerminal' | 'say'>,
  widths: StepWidths,
): StepView {
  return isTerminal ? bars(widths) : lines(say);
}

/** One bar a step, each left standing when the next begins. */
function bars(widths: StepWidths): StepView {
  let bar: SingleBar | undefined;
  let shown = '';
  const close = () => {
    bar?.stop();
    bar = undefined;
  };
  return {
    show({ label, fraction, detail }) {
      const details = fitted(detail ?? '', widths.detail);
      if (label !== shown) {
        close();
        shown = label;
        // What is done as soon as it begins needs no bar: a start from the cache stays quiet.
        if (fraction >= 1) return;
        bar = new cliProgress.SingleBar(
          { format: '{label} {bar} {percentage}% {detail}', barsize: widths.bar, hideCursor: true },
          cliProgress.Presets.shades_classic,
        );
        bar.start(1, fraction, { label: fitted(label, widths.label), detail: details });
      }
      bar?.update(fraction, { detail: details });
    },
    close,
  };
}

function lines(say: (line: string) => void, now: () => number = () => performance.now()): StepView {
  let shown = '';
  let shownAt = 0;
  return {
    show({ label, fraction, detail }) {
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
