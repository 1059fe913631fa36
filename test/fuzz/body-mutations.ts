import type { Dice } from '../support/dice.js';
import {
  copyOf,
  type Json,
  Members,
  type Place,
  placesOf,
  treeOf,
  Verbatim,
  writeTree,
} from './json-tree.js';

/** A mutated body and what was done to it. */
export interface MutatedBody {
  body: Buffer;
  what: string;
}

const DEEP = [10, 60, 65, 1000, 40_000] as const;
const MANY = [2, 33, 2048, 2049, 5000] as const;
const MOST_MUTATIONS = 3;
/** What is repeated grows to so many bytes at most. */
const MOST_BYTES = 400_000;

const verbatim = (...texts: string[]): Json[] => texts.map((text) => new Verbatim(text));

/** Values that readers stumble over. */
const VALUES: readonly [Json, ...Json[]] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  1.5,
  255,
  256,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  1e39,
  1e308,
  5e-324,
  '',
  'a',
  'NaN',
  '1',
  '\u0000',
  '\ud800',
  '\udc00a',
  '🐸'.repeat(100),
  'x'.repeat(5000),
  ' '.repeat(3000),
  '../../etc/passwd',
  '\u202e\ufeff\u0300'.repeat(20),
  [],
  [[]],
  [null],
  new Members([]),
  new Members([{ name: '__proto__', value: 1 }]),
  new Members([{ name: 'length', value: 2 ** 32 }]),
  ...verbatim(
    'NaN',
    'Infinity',
    '-Infinity',
    'undefined',
    '1e309',
    '-1e400',
    '1e-400',
    '9007199254740993',
    '9223372036854775808',
    `${'9'.repeat(400)}`,
    '01',
    '.5',
    '5.',
    '+1',
    '0x10',
    "'a'",
    '"\\x41"',
    '"\\ud800"',
    '"\\u12"',
    '"a\nb"',
    '"a\u0007b"',
    '1 2',
    '[1,]',
    '{"a":1,}',
    '{"a"}',
    '/* */ 1',
    '',
  ),
];

/** A copy: what one mutation puts in, the next may change. */
const anyValue = (dice: Dice): Json => copyOf(dice.pick(VALUES));

const NAMES: readonly [string, ...string[]] = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'length',
  '',
  'inputs',
  'outputs',
  'waitMs',
  'partial',
  'parameters',
  'id',
  'fp32',
  'int64',
  'bytes',
  'bool',
  'data',
  'shape',
  'datatype',
  'name',
  'binary_data_size',
  'binary_data_output',
  'Inputs',
  'x'.repeat(2000),
  '\ud800',
  'a.b[0]',
];

type Mutation = (place: Place, dice: Dice) => string;

const MUTATIONS: readonly [Mutation, ...Mutation[]] = [
  (place, dice) => {
    place.set(anyValue(dice));
    return 'another value';
  },
  (place) => {
    place.remove();
    return 'left out';
  },
  (place, dice) => {
    const again = { name: dice.pick(NAMES), value: dice.chance(0.5) ? copyOf(place.get()) : anyValue(dice) };
    if (place.inside instanceof Members) place.inside.list.splice(place.at, 0, again);
    else place.inside.splice(place.at, 0, again.value);
    return 'a further one beside it';
  },
  (place, dice) => {
    if (!(place.inside instanceof Members)) {
      place.set([place.get()]);
      return 'nested';
    }
    const member = place.inside.list[place.at];
    if (member && dice.chance(0.5)) member.name = dice.pick(NAMES);
    else if (member) place.inside.list.push({ name: member.name, value: anyValue(dice) });
    return 'renamed or repeated';
  },
  (place, dice) => {
    const depth = dice.pick(DEEP);
    const [open, close] = dice.chance(0.5) ? ['[', ']'] : ['{"a":', '}'];
    place.set(new Verbatim(`${open.repeat(depth)}${writeTree(place.get())}${close.repeat(depth)}`));
    return `nested ${depth} deep`;
  },
  (place, dice) => {
    const value = place.get();
    const one = Array.isArray(value) ? (value[0] ?? 1) : value;
    const most = Math.ceil(MOST_BYTES / (writeTree(one).length + 1));
    const count = Math.min(dice.pick(MANY), most);
    // Copies: what is done to one of them later is done to that one alone.
    place.set(Array.from({ length: count }, () => copyOf(one)));
    return `${count} of it`;
  },
  (place) => {
    const value = place.get();
    if (typeof value === 'number') place.set(String(value));
    else if (typeof value === 'string') place.set(Number(value) || value.length);
    else if (Array.isArray(value)) place.set(treeOf(Object.fromEntries(value.map((each, i) => [i, each]))));
    else place.set([value]);
    return 'another type';
  },
  (place, dice) => {
    const value = place.get();
    if (typeof value !== 'number') place.set(anyValue(dice));
    else place.set(dice.pick([-value, value + 1, value - 1, value * 1e9, value / 3, 2 ** dice.below(64)]));
    return 'a number of another size';
  },
  (place, dice) => {
    place.set(dice.pick(['FP32', 'FP64', 'INT64', 'BYTES', 'BOOL', 'FP16', 'UINT8', 'INT128', 'fp32', '']));
    return 'a datatype';
  },
  (place, dice) => {
    const axes = dice.pick([0, 1, 2, 3, 40]);
    place.set(Array.from({ length: axes }, () => dice.pick([0, 1, 2, 3, -1, 1.5, 2 ** 31, 2 ** 53])));
    return 'a shape';
  },
];

/** Changes of the written text, where its structure is no more. */
const TEXT_MUTATIONS: readonly [
  (body: Buffer, dice: Dice) => Buffer,
  ...((body: Buffer, dice: Dice) => Buffer)[],
] = [
  (body, dice) => body.subarray(0, dice.below(body.length + 1)),
  (body, dice) => {
    const flipped = Buffer.from(body);
    for (let i = 0; i <= dice.below(4); i++) flipped[dice.below(body.length)] = dice.below(256);
    return flipped;
  },
  (body, dice) => {
    const at = dice.below(body.length + 1);
    const between = dice.pick([
      Buffer.from([0xff]),
      Buffer.from([0xc0, 0x80]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.from([0xf4, 0x90, 0x80, 0x80]),
      Buffer.from([0]),
      Buffer.from('\ufeff'),
      Buffer.from('"'),
      Buffer.from('\\'),
      dice.bytes(8),
    ]);
    return Buffer.concat([body.subarray(0, at), between, body.subarray(at)]);
  },
  (body) => Buffer.concat([Buffer.from('\ufeff'), body]),
  (body) => Buffer.from(body.toString(), 'utf16le'),
  (body, dice) => Buffer.concat([body, dice.pick([Buffer.from('}'), Buffer.from('\n\n'), body])]),
  (body, dice) => Buffer.concat([Buffer.from(' '.repeat(dice.pick([1, 1000, 100_000]))), body]),
  (_body, dice) => Buffer.from(writeTree(anyValue(dice))),
  (_body, dice) => dice.bytes(dice.below(200)),
  (body, dice) => {
    const [from, to] = [dice.below(body.length), dice.below(body.length)].sort((a, b) => a - b) as [
      number,
      number,
    ];
    return Buffer.concat([body.subarray(0, to), body.subarray(from)]);
  },
];

/** One to three changes of a valid body, now and then of its bytes too. */
export function mutateBody(valid: unknown, dice: Dice): MutatedBody {
  const tree = treeOf(valid);
  const done: string[] = [];
  for (let i = 0; i <= dice.below(MOST_MUTATIONS); i++) {
    const places = placesOf(tree);
    const [first, ...others] = places;
    if (!first) break;
    const place = dice.pick([first, ...others]);
    done.push(`${place.path.slice(0, 60)}: ${dice.pick(MUTATIONS)(place, dice)}`);
  }
  let body: Buffer = Buffer.from(writeTree(tree));
  if (dice.chance(0.2) && body.length > 0) {
    body = dice.pick(TEXT_MUTATIONS)(body, dice);
    done.push('bytes changed');
  }
  return { body, what: done.join('; ') };
}
