import type { Answer, Timing } from '../http/respond.js';
import type { InferResult } from '../inference/request.js';

/** How a door writes an answer; `asked` is what one request asked of the writing. */
export type AnswerWriter<Asked> = (
  result: InferResult,
  timings: readonly Timing[],
  asked: Asked,
) => Omit<Answer, 'status'>;
