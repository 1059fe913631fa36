import type { RequestRecord } from './history.js';

/** What is wrong with an answer, or undefined. */
export function misfit(asked: RequestRecord['asked'], answered: readonly string[]): string | undefined {
  if (asked.length !== answered.length) return `asked ${asked.length} items and got ${answered.length}`;
  const at = asked.findIndex(
    (name, i) => !(typeof name === 'string' ? [name] : name).includes(answered[i] ?? ''),
  );
  return at < 0 ? undefined : `got "${answered[at]}" for item ${at}, "${asked[at]}"`;
}
