import { MillraceError, type ModelDescription, type Settings } from '@millrace/shared';
import { type AddressedLine, LineError, type LineReader } from '../../batches/batch-lines.js';
import type { DoorErrors } from '../../http/context.js';
import { parseStrictJson } from '../../http/strict-json.js';
import type { ModelDirectory } from '../../inference/model-directory.js';
import type { AnswerWriter } from '../answer-writer.js';
import { shortened } from '../client-names.js';
import { JsonSource } from '../json-source.js';
import { requireTexts } from '../limits.js';
import { parsePredict } from '../native/parse.js';
import { nativeErrors } from '../native/problem.js';
import { writePrediction } from '../native/render.js';
import type { ParsedInputs } from '../new-request.js';
import { openInferenceErrors } from '../open-inference/error-body.js';
import { parseInfer } from '../open-inference/parse.js';
import { writeInference } from '../open-inference/render.js';
import { openaiErrors } from '../openai/errors.js';
import { parseEmbeddings } from '../openai/parse.js';
import { writeEmbeddings } from '../openai/render.js';
import { embeddingsRequestSchema } from '../openai/schema.js';
import { readBy } from '../read-by.js';
import { teiErrors } from '../tei/error-body.js';
import { parseEmbed, parseSimilarity } from '../tei/parse.js';
import { writeSimilarities, writeEmbeddings as writeTeiEmbeddings } from '../tei/render.js';
import { unnamedModel } from '../tei/served-model.js';
import { batchLineSchema } from './schema.js';

export interface LineDoorParts {
  directory: ModelDirectory;
  settings: Settings;
}

/** A request in a line, as its door is to read it. */
interface GivenBody {
  model: string | undefined;
  version: string | undefined;
  value: unknown;
  /** The same as it stands in the line. */
  text(): Buffer;
}

interface ReadBody<Asked> {
  model: ModelDescription;
  parsed: ParsedInputs;
  asked: Asked;
}

/** A door whose requests may stand in lines. */
interface LineDoor {
  path: RegExp;
  errors: DoorErrors;
  read(given: GivenBody, parts: LineDoorParts): { body: ReadBody<unknown>; write: AnswerWriter<unknown> };
}

function lineDoor<Asked>(
  path: RegExp,
  errors: DoorErrors,
  write: AnswerWriter<Asked>,
  read: (given: GivenBody, parts: LineDoorParts) => ReadBody<Asked>,
): LineDoor {
  // What a door asks of the writing is only ever handed to its own writer.
  return {
    path,
    errors,
    read: (given, parts) => ({ body: read(given, parts), write: write as AnswerWriter<unknown> }),
  };
}

const VERSIONS = '(?:/versions/(?<version>[^/]+))?';

const DOORS: readonly LineDoor[] = [
  lineDoor(/^\/v1\/embeddings$/, openaiErrors, writeEmbeddings, ({ value }, { directory }) => {
    const fields = readBy(embeddingsRequestSchema, value);
    const model = directory.resolve(fields.model);
    return { model, ...parseEmbeddings(model, fields) };
  }),
  lineDoor(
    new RegExp(`^/v1/models/(?<model>[^/]+)${VERSIONS}/predict$`),
    nativeErrors,
    writePrediction,
    ({ model: name = '', version, value }, { directory }) => {
      const model = directory.resolve(name, version);
      return { model, parsed: parsePredict(model, value), asked: undefined };
    },
  ),
  lineDoor(
    new RegExp(`^/v2/models/(?<model>[^/]+)${VERSIONS}/infer$`),
    openInferenceErrors,
    writeInference,
    ({ model: name = '', version, text }, { directory, settings }) => {
      const model = directory.resolve(name, version);
      const parsed = parseInfer(model, text(), undefined, settings.maxJsonDepth);
      if (parsed.outputs.some(({ binary }) => binary)) {
        throw new MillraceError(
          'unsupported',
          'Outputs as bytes have no place in a line: ask for them as JSON.',
          {
            field: 'outputs',
          },
        );
      }
      return { model, parsed, asked: parsed };
    },
  ),
  lineDoor(
    new RegExp(`^(?:/models/(?<model>[^/]+)${VERSIONS})?/embed$`),
    teiErrors,
    writeTeiEmbeddings,
    (given, parts) => {
      const model = teiModel(given, parts);
      return { model, ...parseEmbed(model, given.value) };
    },
  ),
  lineDoor(
    new RegExp(`^(?:/models/(?<model>[^/]+)${VERSIONS})?/similarity$`),
    teiErrors,
    writeSimilarities,
    (given, parts) => {
      const model = teiModel(given, parts);
      return { model, ...parseSimilarity(model, given.value) };
    },
  ),
];

function teiModel({ model, version }: GivenBody, { directory, settings }: LineDoorParts): ModelDescription {
  return model === undefined
    ? unnamedModel(directory, settings)
    : requireTexts(directory.resolve(model, version));
}

/** Whether lines may be for an address. */
export function isLineAddress(url: string): boolean {
  return DOORS.some(({ path }) => path.test(url));
}

/** Reads the lines of batches by the doors that they are for. */
export function lineReader(parts: LineDoorParts): LineReader {
  const { directory, settings } = parts;
  return (bytes, endpoint) => {
    const { line, customId } = readLine(bytes, settings.maxJsonDepth);
    const url = line.url ?? endpoint;
    const [door, groups] = doorOf(url, customId);
    const given: GivenBody = {
      model: decoded(groups.model),
      version: decoded(groups.version),
      value: line.body,
      text: () => new JsonSource(bytes).text(['body']) ?? Buffer.alloc(0),
    };
    const read: AddressedLine['read'] = () => {
      const { body, write } = readFor(door, given);
      const { model, parsed, asked } = body;
      return {
        request: { ...parsed, model },
        partial: parsed.partial ?? false,
        write: (result, timings) => write(result, timings, asked).body,
      };
    };
    return {
      customId,
      read,
      refuse: (error, requestId) => ({
        status: door.errors.statusOf?.(error) ?? error.spec.status,
        body: JSON.stringify(door.errors.render(error, requestId)),
      }),
    };
  };

  function readFor(door: LineDoor, given: GivenBody) {
    try {
      return door.read(given, parts);
    } catch (error) {
      // Before any worker has announced itself, nothing is known of what will be served.
      const early = error instanceof MillraceError && error.code === 'model_not_found';
      throw early && directory.names().length === 0 ? new MillraceError('no_worker') : error;
    }
  }
}

function readLine(bytes: Buffer, maxDepth: number) {
  let value: unknown;
  try {
    // One level more than a body alone may have.
    value = parseStrictJson(bytes, maxDepth + 1, 'line');
    const line = readBy(batchLineSchema, value, 'line');
    return { line, customId: line.custom_id };
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    const id = (value as { custom_id?: unknown } | null | undefined)?.custom_id;
    throw new LineError(error, typeof id === 'string' ? id : undefined);
  }
}

function doorOf(url: string, customId: string): [LineDoor, Record<string, string | undefined>] {
  for (const door of DOORS) {
    const match = door.path.exec(url);
    if (match) return [door, match.groups ?? {}];
  }
  const fault = `url ${shortened(url)} is no address whose requests can stand in a batch.`;
  throw new LineError(new MillraceError('invalid_input', fault, { field: 'url' }), customId);
}

function decoded(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
