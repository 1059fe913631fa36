import type { Feature } from '../feature.js';
import { ANSWERS } from './answers.js';
import { BAD_INPUT } from './bad-input.js';
import { TROUBLE } from './trouble.js';

/** Every feature, in the order of the table. */
export const FEATURES: readonly Feature[] = [...ANSWERS, ...BAD_INPUT, ...TROUBLE];
