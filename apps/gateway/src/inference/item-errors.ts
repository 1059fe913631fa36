import { ERRORS, type ErrorCode, type ItemError, type ItemOutcome, MillraceError } from '@millrace/shared';
import type { InferResult } from './request.js';

/** The errors of the items that have no answer, in item order. */
export function itemErrors(result: InferResult): ItemError[] {
  const errors: ItemError[] = [];
  for (const [index, item] of result.items.entries()) {
    if (item.status !== 'ok') errors.push({ index, ...reasonOf(item) });
  }
  return errors;
}

/**
 * For doors and requests that are all or nothing.
 * @throws MillraceError with the first failed item's code, naming every failed index.
 */
export function failIfAnyFailed(result: InferResult): void {
  const items = itemErrors(result);
  const first = items[0];
  if (!first) return;
  const indices = items.map((item) => item.index).join(', ');
  const field = result.fieldOf?.(first.index) ?? `inputs[${first.index}]`;
  const message =
    result.items.length === 1
      ? first.message
      : `Of ${result.items.length} inputs, ${items.length} failed (${indices}). ${field}: ${first.message}`;
  throw new MillraceError(first.code, message, {
    field,
    index: first.index,
    items,
  });
}

function reasonOf(item: Exclude<ItemOutcome, { status: 'ok' }>): { code: ErrorCode; message: string } {
  if (item.status === 'failed') return { code: item.code, message: item.message };
  const code = item.status === 'expired' ? 'deadline_exceeded' : 'cancelled';
  return { code, message: ERRORS[code].text };
}
