import { ERRORS, type ErrorCode } from '@millrace/shared';
import { expect } from 'chai';
import type { Answered, Door } from './door.js';

/** Status classes that each fault was answered with, by door: all doors have to agree. */
export const CLASSES = new Map<string, Map<string, number>>();

/** Statuses that say when to try again. */
const COMES_BACK = new Set<number>([429, 503]);

const classOf = (status: number): number => Math.floor(status / 100);

/**
 * Fails unless an answer refuses for this reason in the form of its door: status, error shape, `Retry-After`.
 * @param fault what was wrong, the same words at every door.
 */
export function requireRefusal(door: Door, answer: Answered, code: ErrorCode, fault: string): void {
  const status = door.statuses[code] ?? ERRORS[code].status;
  expect(answer.status, answer.message).to.equal(status);
  door.requireRefusalForm(answer);
  expect(answer.message, 'a stack').not.to.match(/node_modules|\bat .*\.js:/);
  if (COMES_BACK.has(ERRORS[code].status)) {
    expect(Number(answer.header('retry-after')), 'Retry-After').to.be.at.least(1);
  }
  if (door.otherClass.includes(code)) return;
  expect(classOf(answer.status), 'status class').to.equal(classOf(ERRORS[code].status));
  const classes = CLASSES.get(fault) ?? new Map<string, number>();
  CLASSES.set(fault, classes.set(door.name, classOf(answer.status)));
}
