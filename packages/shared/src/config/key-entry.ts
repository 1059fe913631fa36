/** What an API key may be for. */
export const KEY_SCOPES = ['infer', 'jobs', 'admin'] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** Of an entry that names none. */
export const DEFAULT_SCOPES: readonly KeyScope[] = ['infer', 'jobs'];

/** One API key as the settings have it: its name, its SHA-256 and what it is for. */
export interface KeyEntry {
  name: string;
  /** 64 hex digits. */
  hash: string;
  scopes: readonly KeyScope[];
}

const ENTRY =
  /^(?<name>[A-Za-z0-9][A-Za-z0-9._-]{0,63})=(?<hash>[0-9a-f]{64})(?::(?<scopes>[a-z]+(?:\+[a-z]+)*))?$/;

/**
 * Reads `NAME=SHA256HEX[:SCOPE+SCOPE]` entries.
 * @throws Error in words that go on after the setting's name. It shows an entry by its number alone: what was
 * written there may be a key itself.
 */
export function readKeyEntries(entries: readonly string[]): KeyEntry[] {
  const numbers = new Map<string, number>();
  return entries.map((entry, index) => {
    const number = index + 1;
    const read = readEntry(entry);
    if (!read) {
      const which = entries.length > 1 ? `; entry ${number} is not` : '';
      throw new Error(
        `must be NAME=SHA256HEX or NAME=SHA256HEX:SCOPE+SCOPE, with 64 hex digits and scopes of ${KEY_SCOPES.join(', ')}${which}`,
      );
    }
    for (const [what, value] of [
      ['name', read.name],
      ['key', read.hash],
    ] as const) {
      const earlier = numbers.get(`${what} ${value}`);
      if (earlier)
        throw new Error(`must not have one ${what} twice; entries ${earlier} and ${number} have the same`);
      numbers.set(`${what} ${value}`, number);
    }
    return read;
  });
}

/** The text of an entry; undefined for a name that can't be one. */
export function writeKeyEntry({ name, hash, scopes }: KeyEntry): string | undefined {
  const isDefault =
    DEFAULT_SCOPES.length === scopes.length && DEFAULT_SCOPES.every((s) => scopes.includes(s));
  const entry = `${name}=${hash}${isDefault ? '' : `:${scopes.join('+')}`}`;
  return readEntry(entry) ? entry : undefined;
}

export function isKeyScope(value: string): value is KeyScope {
  return (KEY_SCOPES as readonly string[]).includes(value);
}

function readEntry(entry: string): KeyEntry | undefined {
  const { name, hash, scopes } = ENTRY.exec(entry)?.groups ?? {};
  if (name === undefined || hash === undefined) return undefined;
  if (scopes === undefined) return { name, hash, scopes: DEFAULT_SCOPES };
  const named = [...new Set(scopes.split('+'))];
  return named.every(isKeyScope) ? { name, hash, scopes: named } : undefined;
}
