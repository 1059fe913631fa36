const MAX_SHOWN = 64;

/** A name that a client made up, cut so that an answer can't be made large by it. */
export function shortened(name: string): string {
  return name.length <= MAX_SHOWN ? name : `${name.slice(0, MAX_SHOWN)}…`;
}

/** The same in quotes, with whatever is not printable escaped. */
export function quoted(name: string): string {
  return JSON.stringify(shortened(name));
}
