import { MillraceError } from '@millrace/shared';
import type { DoorErrors } from '../http/context.js';
import { type Answer, timingsOf } from '../http/respond.js';
import type { InferResult } from '../inference/request.js';
import type { AnswerWriter } from './answer-writer.js';
import { nativeErrors } from './native/problem.js';
import { writePrediction } from './native/render.js';
import { openInferenceErrors } from './open-inference/error-body.js';
import type { ParsedInfer } from './open-inference/parse.js';
import { writeInference } from './open-inference/render.js';
import { openaiErrors } from './openai/errors.js';
import { writeEmbeddings as writeOpenaiEmbeddings } from './openai/render.js';
import { teiErrors } from './tei/error-body.js';
import { writeAny, writeEmbeddings, writeSimilarities, writeTexts, writeTokens } from './tei/render.js';

interface KnownWriter<Asked> {
  write: AnswerWriter<Asked>;
  errors: DoorErrors;
  /** What of `asked` the writer reads, where a request brings more. */
  kept?: (asked: Asked) => Asked;
}

function known<Asked>(
  write: AnswerWriter<Asked>,
  errors: DoorErrors,
  kept?: (asked: Asked) => Asked,
): KnownWriter<unknown> {
  // Only what was recorded of a writer's own requests is ever handed to it.
  return { write, errors, kept } as KnownWriter<unknown>;
}

type AskedInference = Pick<ParsedInfer, 'id' | 'outputs'>;

/** The writers by the names that stand in records: such a name never changes its meaning. */
const WRITERS: Readonly<Record<string, KnownWriter<unknown>>> = {
  predict: known(writePrediction, nativeErrors),
  infer: known<AskedInference>(writeInference, openInferenceErrors, ({ id, outputs }) => ({
    ...(id === undefined ? {} : { id }),
    outputs,
  })),
  embeddings: known(writeOpenaiEmbeddings, openaiErrors),
  'tei.embed': known(writeEmbeddings, teiErrors),
  'tei.similarity': known(writeSimilarities, teiErrors),
  'tei.any': known(writeAny, teiErrors),
  'tei.tokenize': known(writeTokens, teiErrors),
  'tei.decode': known(writeTexts, teiErrors),
};

/** How the answer of a request that was kept is written, long after its door has read it. */
export class Writers {
  readonly #names = new Map<unknown, string>(
    Object.entries(WRITERS).map(([name, { write }]) => [write, name]),
  );

  /** @throws Error for a writer whose answers can't be kept. */
  recorded<Asked>(write: AnswerWriter<Asked>, asked: Asked): { writer: string; asked: unknown } {
    const writer = this.#names.get(write);
    if (writer === undefined) throw new Error('a writer without a name');
    const { kept } = WRITERS[writer] ?? {};
    return { writer, asked: kept ? kept(asked) : asked };
  }

  /** The answer of a request that is done, as its door gives it. */
  write(name: string, result: InferResult, asked: unknown): Answer {
    const { received = 0, replied = received } = result.stamps;
    return {
      status: 200,
      ...this.#of(name).write(result, timingsOf(result.stamps, received, replied), asked),
    };
  }

  /** An error as its door gives it. */
  refuse(name: string, error: MillraceError, requestId: string): Answer {
    const { errors } = this.#of(name);
    return {
      status: errors.statusOf?.(error) ?? error.spec.status,
      contentType: errors.contentType,
      body: JSON.stringify(errors.render(error, requestId)),
    };
  }

  #of(name: string): KnownWriter<unknown> {
    const writer = WRITERS[name];
    // Of a later version.
    if (!writer) throw new MillraceError('contract_version_unsupported');
    return writer;
  }
}
