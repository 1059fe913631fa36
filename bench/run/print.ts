import { availableParallelism, cpus } from 'node:os';
import type { BenchOptions, Outcome } from './scenario.js';
import { rounded, type Spread, verdictOf } from './statistics.js';

/** The outcome as the one line of JSON that ends a run. */
export function resultLine(scenario: string, options: BenchOptions, outcome: Outcome): string {
  const { parts, sides, faults, notes, generatorCpuShare, facts } = outcome;
  const verdict = verdictOf(parts);
  return JSON.stringify({
    scenario,
    ratio: rounded(verdict.ratio),
    bar: verdict.bar,
    pass: verdict.pass && faults.length === 0,
    parts: parts.map(({ name, ratio, bar }) => ({ name, ratio: rounded(ratio), bar })),
    sides: Object.fromEntries(
      Object.entries(sides).map(([side, figures]) => [
        side,
        Object.fromEntries(
          Object.entries(figures).map(([name, { median, least, most }]) => [
            name,
            { median: rounded(median), min: rounded(least), max: rounded(most) },
          ]),
        ),
      ]),
    ),
    generatorCpuShare: rounded(generatorCpuShare),
    ...facts,
    rounds: options.rounds,
    seconds: options.seconds,
    faults,
    notes,
    machine: `${availableParallelism()} x ${cpus()[0]?.model ?? 'unknown'}, Node.js ${process.versions.node}`,
  });
}

export function passes(outcome: Outcome): boolean {
  return verdictOf(outcome.parts).pass && outcome.faults.length === 0;
}

/** The outcome as a table: a line a side, a column a figure, medians with their range. */
export function resultTable(outcome: Outcome): string {
  const columns = [...new Set(Object.values(outcome.sides).flatMap((side) => Object.keys(side)))];
  const rows = Object.entries(outcome.sides).map(([side, figures]) => [
    side,
    ...columns.map((column) => cell(figures[column])),
  ]);
  const lines = [table([['side', ...columns.map(heading)], ...rows])];
  for (const { name, ratio, bar } of outcome.parts) {
    const verdict = ratio >= bar ? 'reached' : 'MISSED';
    lines.push(`${name}: ${rounded(ratio)} (to reach: ${bar}) ${verdict}`);
  }
  for (const fault of outcome.faults) lines.push(`FAULT: ${fault}`);
  for (const note of outcome.notes) lines.push(`note: ${note}`);
  return lines.join('\n');
}

function heading(figure: string): string {
  return figure.replace(/([A-Z]+)/g, ' $1').toLowerCase();
}

function cell(spread: Spread | undefined): string {
  if (!spread) return '';
  const { median, least, most } = spread;
  if (least === most) return short(median);
  return `${short(median)} (${short(least)}-${short(most)})`;
}

function short(value: number): string {
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toPrecision(3);
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows
    .map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n');
}
