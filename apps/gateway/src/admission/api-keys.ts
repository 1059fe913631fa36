import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { MillraceError, StartupError } from '@millrace/shared';

const KEY_PREFIX = 'mr_';
const KEY_BYTES = 32;
const ENTRY = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})=([0-9a-f]{64})$/;
const BEARER = /^Bearer +(\S+) *$/i;

/** The tenant of requests when no keys are asked for. */
export const ANONYMOUS = 'anonymous';

interface KnownKey {
  name: string;
  hash: Buffer;
}

/** The headers in which a key may come. */
export interface KeyHeaders {
  authorization?: string | undefined;
  'x-api-key'?: string | string[] | undefined;
}

/**
 * The API keys of this installation. Only their SHA-256 is ever kept: a key is 256 random bits, so a plain
 * hash of it can't be searched.
 */
export class ApiKeys {
  readonly #byHash = new Map<string, KnownKey>();

  /**
   * @param entries `name=sha256hex`, as the setting takes them.
   * @throws StartupError naming an entry that is not of that form.
   */
  constructor(entries: readonly string[]) {
    for (const [index, entry] of entries.entries()) {
      const [, name, hex] = ENTRY.exec(entry) ?? [];
      if (name === undefined || hex === undefined) {
        throw new StartupError(
          `Entry ${index + 1} of the API keys is not NAME=SHA256HEX.`,
          'Make one with `millrace keys NAME` and put its entry into MILLRACE_API_KEYS.',
        );
      }
      this.#byHash.set(hex, { name, hash: Buffer.from(hex, 'hex') });
    }
  }

  get required(): boolean {
    return this.#byHash.size > 0;
  }

  /**
   * Who sends a request.
   * @returns the key's name; "anonymous" where no keys are asked for.
   * @throws MillraceError `unauthorized`.
   */
  authenticate(headers: KeyHeaders): string {
    if (!this.required) return ANONYMOUS;
    const key = keyOf(headers);
    if (key === undefined) throw new MillraceError('unauthorized');
    const hash = createHash('sha256').update(key).digest();
    const known = this.#byHash.get(hash.toString('hex'));
    // The lookup's time tells at most about hashes; the comparison that decides takes the same time always.
    if (!known || !timingSafeEqual(known.hash, hash)) {
      throw new MillraceError('unauthorized', 'This API key is not known here.');
    }
    return known.name;
  }
}

/** Makes a key; only `entry` is to be kept. */
export function makeApiKey(name: string): { key: string; entry: string } {
  const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url');
  const entry = `${name}=${createHash('sha256').update(key).digest('hex')}`;
  if (!ENTRY.test(entry)) {
    throw new StartupError(
      `${JSON.stringify(name)} can't name an API key.`,
      'Use letters, digits, ".", "_" or "-", at most 64.',
    );
  }
  return { key, entry };
}

function keyOf(headers: KeyHeaders): string | undefined {
  const bearer = BEARER.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  const other = headers['x-api-key'];
  return typeof other === 'string' && other !== '' ? other : undefined;
}
