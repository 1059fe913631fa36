import type { DoorErrors } from '../../http/context.js';
import { openaiErrors } from '../openai/errors.js';

/** In OpenAI's shape; uploads of minutes would say nothing among the durations of that door. */
export const filesErrors: DoorErrors = { ...openaiErrors, name: 'files' };
