import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';
import { MillraceError } from '@millrace/shared';
import { pipeBody } from '../../http/body-pipe.js';
import { quoted, shortened } from '../client-names.js';

const KIB = 1024;
/** Bounds of what is no file in a form. */
const LIMITS = { fieldSize: 4 * KIB, fields: 16, files: 2, parts: 20, headerPairs: 16, headerSize: 8 * KIB };
/** Room for the fields and the form's own lines, beside the file. */
const FORM_BYTES = 128 * KIB;
const FORM_TYPE = /^multipart\/form-data *;/i;

/** The texts of a form, by the names of their fields. */
export type FormFields = ReadonlyMap<string, string>;

/** A file within a form: its bytes come as they are read. */
export interface FormFile {
  field: string;
  /** Empty where it has none. */
  filename: string;
  content: AsyncIterable<Uint8Array>;
  /** The fields that came before it. */
  before: FormFields;
}

/**
 * Reads a form with one file in it, which is taken as it comes.
 * @param take has taken the file when it resolves; what it throws ends the reading.
 * @returns the fields, when all of the form was read and the file is taken.
 * @throws MillraceError `unsupported_media_type`, `invalid_input`, `invalid_encoding`, `body_too_large`, `cancelled`, and
 * what `take` throws. `take` has ended by then.
 */
export async function readForm(
  req: IncomingMessage,
  maxFileBytes: number,
  take: (file: FormFile) => Promise<void>,
): Promise<FormFields> {
  const form = new FormReading(parserOf(req), take);
  const pipe = pipeBody(req, form.parser, maxFileBytes + FORM_BYTES);
  try {
    await Promise.race([pipe.done, form.failed]);
    form.parser.end();
    await Promise.race([form.parsed, form.failed]);
    await form.taken;
    return form.fields;
  } catch (error) {
    pipe.stop();
    await form.giveUp(error);
    throw error;
  }
}

class FormReading {
  readonly fields = new Map<string, string>();
  /** Resolves when all parts were read. */
  readonly parsed: Promise<void>;
  /** Rejects when the form can't be what is wanted, or the file can't be taken. */
  readonly failed: Promise<never>;
  /** Resolves when the file is taken; at once where there is none. */
  taken: Promise<void> = Promise.resolve();
  #file: Readable | undefined;

  constructor(
    readonly parser: BusboyInstance,
    take: (file: FormFile) => Promise<void>,
  ) {
    this.parsed = new Promise((resolve) => parser.once('finish', resolve));
    this.failed = new Promise((_, reject) => {
      parser.on('error', () => reject(broken()));
      for (const limit of ['partsLimit', 'fieldsLimit', 'filesLimit'] as const) {
        parser.on(limit, () => reject(invalid('The form has more parts than any here.', 'body')));
      }
      parser.on('field', (name, value, _nameCut, isCut) => {
        const fault = this.#faultOf(name, isCut);
        if (fault) reject(fault);
        else this.fields.set(name, value);
      });
      parser.on('file', (field, stream, filename) => {
        if (this.#file) {
          stream.resume();
          reject(invalid('The form has more than one file.', 'file'));
          return;
        }
        this.#file = stream;
        // Heard also when nobody reads it any more.
        stream.on('error', () => undefined);
        const before = new Map(this.fields);
        this.taken = take({ field, filename: filename ?? '', content: piecesOf(stream), before });
        this.taken.catch(reject);
      });
    });
    this.failed.catch(() => undefined);
  }

  /** Lets whoever takes the file end too. */
  async giveUp(error: unknown): Promise<void> {
    this.#file?.destroy(error as Error);
    await this.taken.catch(() => undefined);
    this.parser.destroy();
  }

  #faultOf(name: string | undefined, isCut: boolean): MillraceError | undefined {
    if (name === undefined) return invalid('A part of the form has no name.', 'body');
    if (isCut) {
      return invalid(
        `${quoted(name)} is longer than any field here. A file needs a filename.`,
        shortened(name),
      );
    }
    if (this.fields.has(name)) return invalid(`${quoted(name)} is in the form twice.`, shortened(name));
    return undefined;
  }
}

function parserOf(req: IncomingMessage): BusboyInstance {
  const type = req.headers['content-type'];
  if (type === undefined || !FORM_TYPE.test(type)) throw notAForm();
  try {
    return Busboy({ headers: req.headers as BusboyHeaders, limits: LIMITS });
  } catch {
    // It names no boundary.
    throw notAForm();
  }
}

/** What breaks off in the middle of the file is the form's fault. */
async function* piecesOf(stream: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    throw error instanceof MillraceError ? error : broken();
  }
}

function notAForm(): MillraceError {
  return new MillraceError(
    'unsupported_media_type',
    'The header Content-Type must be multipart/form-data with a boundary.',
    { field: 'Content-Type' },
  );
}

function broken(): MillraceError {
  return invalid('The body is not a whole form of the type multipart/form-data.', 'body');
}

function invalid(message: string, field: string): MillraceError {
  return new MillraceError('invalid_input', message, { field });
}
