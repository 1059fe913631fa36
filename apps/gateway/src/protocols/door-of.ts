import type { DoorErrors } from '../http/context.js';
import { filesErrors } from './files/errors.js';
import { nativeErrors } from './native/problem.js';
import { openInferenceErrors } from './open-inference/error-body.js';
import { openaiErrors } from './openai/errors.js';
import { teiErrors } from './tei/error-body.js';

const OPEN_INFERENCE = /^\/v2(\/|$)/;
/**
 * OpenAI's clients find the sentence of an error in no other shape. Also at addresses of OpenAI's that are not
 * here: there they would tell nothing but the status. What is behind a model's name is the native door's.
 */
const OPENAI =
  /^\/v1\/((files|batches)(\/.*)?|embeddings|models(\/[^/]+)?|chat\/completions|completions|responses)\/?$/;
const TEI =
  /^\/($|(embed|embed_all|embed_sparse|predict|rerank|similarity|tokenize|decode|info|models)(\/|$))/;
const TEI_HEALTH = /^\/health(\/|$)/;
const FILES = /^\/v1\/files(\/|$)/;
/** What operators ask for; its own label keeps their polling out of the doors' numbers. */
const OPERATIONS = /^\/(dashboard|metrics|v2\/health)(\/|$)/;

export const operationsErrors: DoorErrors = { ...nativeErrors, name: 'operations' };
const teiHealthErrors: DoorErrors = { ...teiErrors, name: 'operations' };

/** The door that answers for a path: in whose shape its errors are, and whose number it counts to. */
export function doorOf(path: string): DoorErrors {
  if (OPERATIONS.test(path)) return operationsErrors;
  if (TEI.test(path)) return teiErrors;
  if (TEI_HEALTH.test(path)) return teiHealthErrors;
  if (OPENAI.test(path)) return openaiErrors;
  if (FILES.test(path)) return filesErrors;
  return OPEN_INFERENCE.test(path) ? openInferenceErrors : nativeErrors;
}
