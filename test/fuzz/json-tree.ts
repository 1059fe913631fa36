/** JSON as it is written, not as it is read: members in order and repeated, and text that is no JSON at all. */
export type Json = string | number | boolean | null | Json[] | Members | Verbatim;

export class Members {
  constructor(readonly list: { name: string; value: Json }[]) {}
}

/** Stands in the body as it is. */
export class Verbatim {
  constructor(readonly text: string) {}
}

export function treeOf(value: unknown): Json {
  if (Array.isArray(value)) return value.map(treeOf);
  if (typeof value === 'object' && value !== null) {
    return new Members(Object.entries(value).map(([name, member]) => ({ name, value: treeOf(member) })));
  }
  return value as string | number | boolean | null;
}

export function copyOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(copyOf);
  if (value instanceof Members) {
    return new Members(value.list.map((member) => ({ name: member.name, value: copyOf(member.value) })));
  }
  return value;
}

export function writeTree(value: Json): string {
  if (value instanceof Verbatim) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeTree).join(',')}]`;
  if (value instanceof Members) {
    const members = value.list.map((member) => `${JSON.stringify(member.name)}:${writeTree(member.value)}`);
    return `{${members.join(',')}}`;
  }
  return Object.is(value, -0) ? '-0' : JSON.stringify(value);
}

/** A place in a tree whose value can be looked at, replaced or taken out. */
export interface Place {
  /** As a person writes it: `inputs[3].fp32`. */
  path: string;
  get(): Json;
  set(value: Json): void;
  remove(): void;
  /** The list or members that it stands in, and where. */
  inside: Json[] | Members;
  at: number;
}

/** Every place below the root. */
export function placesOf(root: Json, path = ''): Place[] {
  if (Array.isArray(root)) {
    return root.flatMap((value, at) => [
      placeInList(root, at, `${path}[${at}]`),
      ...placesOf(value, `${path}[${at}]`),
    ]);
  }
  if (root instanceof Members) {
    return root.list.flatMap(({ name, value }, at) => {
      const where = path === '' ? name : `${path}.${name}`;
      return [placeInMembers(root, at, where), ...placesOf(value, where)];
    });
  }
  return [];
}

function placeInList(list: Json[], at: number, path: string): Place {
  return {
    path,
    inside: list,
    at,
    get: () => list[at] ?? null,
    set: (value) => {
      list[at] = value;
    },
    remove: () => void list.splice(at, 1),
  };
}

function placeInMembers(members: Members, at: number, path: string): Place {
  return {
    path,
    inside: members,
    at,
    get: () => members.list[at]?.value ?? null,
    set: (value) => {
      const member = members.list[at];
      if (member) member.value = value;
    },
    remove: () => void members.list.splice(at, 1),
  };
}
