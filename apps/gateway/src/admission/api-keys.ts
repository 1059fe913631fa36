import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  DEFAULT_SCOPES,
  isKeyScope,
  KEY_SCOPES,
  type KeyEntry,
  type KeyScope,
  MillraceError,
  StartupError,
  writeKeyEntry,
} from '@millrace/shared';

const KEY_PREFIX = 'mr_';
const KEY_BYTES = 32;
const BEARER = /^Bearer +(\S+) *$/i;

/** The tenant of requests when no keys are asked for. */
export const ANONYMOUS = 'anonymous';

interface KnownKey extends KeyEntry {
  digest: Buffer;
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

  constructor(entries: readonly KeyEntry[]) {
    for (const entry of entries) {
      this.#byHash.set(entry.hash, { ...entry, digest: Buffer.from(entry.hash, 'hex') });
    }
  }

  get required(): boolean {
    return this.#byHash.size > 0;
  }

  /** Whether any key is for this. */
  hasScope(scope: KeyScope): boolean {
    for (const { scopes } of this.#byHash.values()) if (scopes.includes(scope)) return true;
    return false;
  }

  /**
   * Who sends a request.
   * @param scopes all that the key must be for; none: any key will do.
   * @returns the key's name; "anonymous" where no keys are asked for.
   * @throws MillraceError `unauthorized`, `forbidden`.
   */
  authenticate(headers: KeyHeaders, ...scopes: readonly KeyScope[]): string {
    if (!this.required) return ANONYMOUS;
    const key = keyOf(headers);
    if (key === undefined) throw new MillraceError('unauthorized');
    const known = this.find(key);
    if (!known) throw new MillraceError('unauthorized', 'This API key is not known here.');
    const lacking = scopes.find((scope) => !known.scopes.includes(scope));
    if (lacking !== undefined) {
      throw new MillraceError('forbidden', `This API key lacks the scope "${lacking}".`);
    }
    return known.name;
  }

  /** The entry of a key. */
  find(key: string): KeyEntry | undefined {
    const digest = createHash('sha256').update(key).digest();
    const known = this.#byHash.get(digest.toString('hex'));
    // The lookup's time tells at most about hashes; the comparison that decides takes the same time always.
    return known && timingSafeEqual(known.digest, digest) ? known : undefined;
  }
}

/**
 * Makes a key; only `entry` is to be kept.
 * @throws StartupError for a name or a scope that can't be one.
 */
export function makeApiKey(
  name: string,
  scopes: readonly string[] = DEFAULT_SCOPES,
): { key: string; entry: string } {
  if (!scopes.every(isKeyScope)) {
    const unknown = scopes.find((scope) => !isKeyScope(scope));
    throw new StartupError(
      `There is no scope ${JSON.stringify(unknown)}.`,
      `Choose from ${KEY_SCOPES.join(', ')}.`,
    );
  }
  const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url');
  const hash = createHash('sha256').update(key).digest('hex');
  const entry = writeKeyEntry({ name, hash, scopes: [...new Set(scopes)] });
  if (entry === undefined) {
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
