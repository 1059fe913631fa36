import type { MillraceError } from '@millrace/shared';
import type { Timing } from '../http/respond.js';
import type { InferResult } from '../inference/request.js';
import type { LineRequest } from '../lines/line-groups.js';

/** A line as its door reads it. */
export interface ReadLine {
  request: Omit<LineRequest, 'waitMs'>;
  /** Whether failed items may stand beside answered ones; otherwise one fails the line. */
  partial: boolean;
  /** The answer as JSON. */
  write(result: InferResult, timings: readonly Timing[]): string | Buffer;
}

/** A line that says what it asks and of which door, but was not read by that door yet. */
export interface AddressedLine {
  /** The client's name for the line. */
  customId: string;
  /**
   * Reads it by its door.
   * @throws MillraceError what the door refuses.
   */
  read(): ReadLine;
  /** An error as the door writes it: status and JSON. */
  refuse(error: MillraceError, requestId: string): { status: number; body: string };
}

/**
 * Reads a line of a batch as far as which door it is for.
 * @throws LineError for one that can't be read at all.
 */
export type LineReader = (bytes: Buffer, endpoint: string) => AddressedLine;

/** A line that comes to no door, and its name where it tells one. */
export class LineError extends Error {
  override readonly name = 'LineError';
  readonly error: MillraceError;
  readonly customId: string | undefined;

  constructor(error: MillraceError, customId: string | undefined) {
    super(error.message, { cause: error });
    this.error = error;
    this.customId = customId;
  }
}

/** JSON with its line end, in parts: bodies are not copied before they stand in their piece of the file. */
export type LineText = readonly (string | Buffer)[];

/** What stands in the output or the error file for a line. */
export interface LineAnswer {
  succeeded: boolean;
  text: LineText;
}

interface Named {
  batchId: string;
  number: number;
  customId: string | undefined;
}

/** A line that its door answered, with whatever status. `body` is JSON. */
export function answeredLine(
  named: Named,
  status: number,
  requestId: string,
  body: string | Buffer,
): LineAnswer {
  const head = `"response":{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":`;
  return { succeeded: status < 400, text: [headOf(named) + head, body, '},"error":null}\n'] };
}

/** A line that came to no door. */
export function failedLine(named: Named, { code, message }: MillraceError): LineAnswer {
  const error = JSON.stringify({ code, message });
  return { succeeded: false, text: [`${headOf(named)}"response":null,"error":${error}}\n`] };
}

function headOf({ batchId, number, customId }: Named): string {
  const id = `batch_req_${batchId.slice('batch_'.length)}_${number}`;
  return `{"id":"${id}","custom_id":${customId === undefined ? 'null' : JSON.stringify(customId)},"line":${number},`;
}
