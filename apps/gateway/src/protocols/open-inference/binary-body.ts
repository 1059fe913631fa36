import type { IncomingHttpHeaders } from 'node:http';
import { MillraceError } from '@millrace/shared';

/** Names the byte length of the JSON in a body that has tensors behind it. Node.js writes names in lower case. */
export const JSON_LENGTH_HEADER = 'Inference-Header-Content-Length';
const WHOLE = /^\d{1,15}$/;

/**
 * What the header says: the length of the JSON in front of binary tensors. Absent: the body is JSON alone. 0:
 * there is no JSON, the whole body is one tensor.
 * @throws MillraceError `invalid_input` for anything but a whole number, or for two of them.
 */
export function jsonLengthOf(headers: IncomingHttpHeaders): number | undefined {
  const value = headers['inference-header-content-length'];
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !WHOLE.test(value)) {
    throw invalid(JSON_LENGTH_HEADER, 'must be a whole number of bytes >= 0');
  }
  return Number(value);
}

/** A body in two: JSON, and the bytes of tensors behind one another, taken in the order they are listed. */
export class BinaryBody {
  readonly json: Buffer;
  readonly #bytes: Buffer;
  #at = 0;

  /**
   * @param jsonLength as {@link jsonLengthOf} read it.
   * @throws MillraceError `invalid_input` when the body is shorter.
   */
  constructor(body: Buffer, jsonLength = body.byteLength) {
    if (jsonLength > body.byteLength) {
      throw invalid(
        JSON_LENGTH_HEADER,
        `says ${jsonLength} bytes of JSON, but the body has ${body.byteLength} bytes`,
      );
    }
    this.json = body.subarray(0, jsonLength);
    this.#bytes = body.subarray(jsonLength);
  }

  /**
   * The next tensor's bytes, as a view.
   * @throws MillraceError `invalid_input` when so many are not left.
   */
  take(bytes: number, field: string): Uint8Array {
    const end = this.#at + bytes;
    if (end > this.#bytes.byteLength) {
      const name = `${field}.parameters.binary_data_size`;
      const left = this.#bytes.byteLength - this.#at;
      throw invalid(name, `says ${bytes} bytes, but of those behind the JSON ${left} are left`);
    }
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  /** @throws MillraceError `invalid_input` when bytes are left that belong to no tensor. */
  requireEnd(): void {
    const left = this.#bytes.byteLength - this.#at;
    if (left > 0) throw invalid('body', `has ${left} bytes behind its last tensor`);
  }
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
