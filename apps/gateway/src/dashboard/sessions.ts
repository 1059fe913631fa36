import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ApiKeys } from '../admission/api-keys.js';

const SESSION_MS = 12 * 3_600_000;
const USER = 'admin';

/**
 * Sessions of the dashboard: a token is an id and an expiry, signed with a secret that this process made for
 * itself and forgets when it ends.
 */
export class Sessions {
  readonly #secret = randomBytes(32);
  /** Undefined where there is no password: then none is right, the empty one included. */
  readonly #password: Buffer | undefined;
  readonly #keys: ApiKeys;
  /** Ids of sessions that were ended, by when they would have expired. */
  readonly #ended = new Map<string, number>();

  /** @param password empty where there is none. */
  constructor(password: string, keys: ApiKeys) {
    this.#password = password === '' ? undefined : digest(password);
    this.#keys = keys;
  }

  /** How long a session lasts, in seconds. */
  get maxAgeSeconds(): number {
    return SESSION_MS / 1000;
  }

  /**
   * Whether these are the admin and the password, or the name and key of an API key of the scope `admin`.
   * Compares in a time that doesn't depend on where they differ.
   */
  accepts(user: string, password: string): boolean {
    const key = this.#keys.find(password);
    if (key?.scopes.includes('admin') && key.name === user) return true;
    if (!this.#password) return false;
    const userFits = timingSafeEqual(digest(user), digest(USER));
    const passwordFits = timingSafeEqual(digest(password), this.#password);
    return userFits && passwordFits;
  }

  /** A token of a new session. */
  begin(): string {
    const payload = `${randomBytes(16).toString('base64url')}.${Date.now() + SESSION_MS}`;
    return `${payload}.${this.#sign(payload)}`;
  }

  isValid(token: string | undefined): boolean {
    return this.#read(token) !== undefined;
  }

  /** What a form of this session carries: a page of another port of this host can send its cookie, but not know this. */
  formToken(token: string | undefined): string {
    return this.#sign(`form ${token ?? ''}`);
  }

  isFormToken(token: string | undefined, given: string): boolean {
    const [expected, held] = [Buffer.from(this.formToken(token)), Buffer.from(given)];
    return held.byteLength === expected.byteLength && timingSafeEqual(held, expected);
  }

  end(token: string | undefined): void {
    const session = this.#read(token);
    if (!session) return;
    for (const [id, expiresAt] of this.#ended) if (expiresAt < Date.now()) this.#ended.delete(id);
    this.#ended.set(session.id, session.expiresAt);
  }

  #read(token: string | undefined): { id: string; expiresAt: number } | undefined {
    const [id, expiry, signature, ...rest] = token?.split('.') ?? [];
    if (!id || !expiry || !signature || rest.length > 0) return undefined;
    const expected = Buffer.from(this.#sign(`${id}.${expiry}`));
    const given = Buffer.from(signature);
    if (given.byteLength !== expected.byteLength || !timingSafeEqual(given, expected)) return undefined;
    const expiresAt = Number(expiry);
    return expiresAt > Date.now() && !this.#ended.has(id) ? { id, expiresAt } : undefined;
  }

  #sign(payload: string): string {
    return createHmac('sha256', this.#secret).update(payload).digest('base64url');
  }
}

/** Digests have one length, which a comparison in constant time needs. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
