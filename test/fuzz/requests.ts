import type { Dice } from '../support/dice.js';
import { MINILM } from '../support/minilm.js';

/** In whose shape the answer's errors must be. */
export type Door = 'native' | 'open' | 'openai' | 'tei' | 'page' | 'any';

/** One request before it is written to a socket. */
export interface Wanted {
  method: string;
  target: string;
  headers: [string, string][];
  body: Buffer;
  door: Door;
}

export const DASHBOARD_PASSWORD = 'fuzz-dashboard-password';
/** Of the requests to a model; it costs a thousand times what the identity model does. */
const MINILM_SHARE = 0.02;

/** A valid body and the address that takes it. */
export interface ValidCall {
  path: string;
  door: Door;
  body: unknown;
}

const TENSORS: readonly [unknown, ...unknown[]] = [
  { fp32: [0.5, -1.25, 3] },
  { int64: [9007199254740991, -5] },
  { bool: [true, false] },
  { uint8: [0, 255] },
  { bytes: ['', 'жаба 🐸'] },
  { fp32: [1], int64: [2], bool: [true], uint8: [3], bytes: ['x'] },
];

const NATIVE_OPTIONS: readonly [object, ...object[]] = [
  {},
  {},
  { waitMs: 5000 },
  { partial: true },
  { parameters: { user: 'a', top: 3, raw: true } },
];

const OPEN_OPTIONS: readonly [object, ...object[]] = [
  {},
  { id: 'mine' },
  { parameters: { a: 1 } },
  { outputs: [{ name: 'fp32_out' }] },
  { outputs: [] },
];

const EMBEDDED: readonly [unknown, ...unknown[]] = [
  'A sentence of a few words.',
  ['A short text.', 'Another.'],
  [7592, 2088],
  [[7592], [2088, 7592]],
];

const EMBEDDING_OPTIONS: readonly [object, ...object[]] = [
  {},
  { encoding_format: 'base64' },
  { encoding_format: 'float', dimensions: 384, user: 'a' },
];

export function validCall(dice: Dice): ValidCall {
  const isText = dice.chance(MINILM_SHARE);
  if (isText && dice.chance(0.3)) {
    const body = { model: MINILM, input: dice.pick(EMBEDDED), ...dice.pick(EMBEDDING_OPTIONS) };
    return { path: '/v1/embeddings', door: 'openai', body };
  }
  const model = isText ? MINILM : 'identity';
  const version = dice.chance(0.2) ? '/versions/1' : '';
  if (dice.chance(0.5)) {
    const one = isText ? 'A sentence of a few words.' : dice.pick(TENSORS);
    const inputs = dice.chance(0.5) ? one : Array(1 + dice.below(4)).fill(one);
    const path = `/v1/models/${model}${version}/predict`;
    return { path, door: 'native', body: { inputs, ...dice.pick(NATIVE_OPTIONS) } };
  }
  const items = 1 + dice.below(3);
  const texts = { name: 'text', datatype: 'BYTES', shape: [items], data: Array(items).fill('A short text.') };
  const floats = { name: 'fp32', datatype: 'FP32', shape: [items, 2], data: Array(items).fill([1, 2.5]) };
  const flags = { name: 'bool', datatype: 'BOOL', shape: [items, 1], data: Array(items).fill(true) };
  const inputs = isText ? [texts] : dice.chance(0.3) ? [floats, flags] : [floats];
  const options = isText ? {} : dice.pick(OPEN_OPTIONS);
  return { path: `/v2/models/${model}${version}/infer`, door: 'open', body: { inputs, ...options } };
}

/** What is only asked for: no body belongs to it. */
const ASKED: readonly [[string, Door], ...[string, Door][]] = [
  ['/v1/models', 'openai'],
  ['/v1/models/identity', 'openai'],
  ['/v1/models/nope', 'openai'],
  ['/v1/embeddings', 'openai'],
  ['/v2', 'open'],
  ['/v2/health/live', 'native'],
  ['/v2/health/ready', 'native'],
  ['/v2/models/identity', 'open'],
  ['/v2/models/identity/versions/1', 'open'],
  ['/v2/models/identity/ready', 'open'],
  [`/v2/models/${MINILM}/versions/1/ready`, 'open'],
  ['/v2/models/nope', 'open'],
  ['/v2/repository/index', 'open'],
  ['/v2/repository/models/identity/load', 'open'],
  ['/metrics', 'native'],
  ['/dashboard', 'page'],
  ['/dashboard/login', 'page'],
  ['/dashboard/api/queues', 'page'],
  ['/dashboard/logout', 'page'],
  ['/', 'tei'],
  ['/info', 'tei'],
  ['/tokenize', 'tei'],
  ['/favicon.ico', 'native'],
  ['/v1/models/identity/versions/99/predict', 'native'],
  ['/v1/jobs/00000000-0000-4000-8000-000000000000', 'native'],
  ['/v1/models/constructor/predict', 'native'],
  ['/v2/models/__proto__/infer', 'open'],
  ['/v3/models', 'native'],
];

const METHODS: readonly [string, ...string[]] = [
  'GET',
  'GET',
  'GET',
  'HEAD',
  'OPTIONS',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'PROPFIND',
  'TRACE',
];

export function jsonRequest(
  path: string,
  door: Door,
  body: Buffer,
  headers: [string, string][] = [],
): Wanted {
  return {
    method: 'POST',
    target: path,
    headers: [['Host', 'fuzz'], ['Content-Type', 'application/json'], ...headers],
    body,
    door,
  };
}

/** A request without a body, or with one where none belongs, by a method that may be another. */
export function askedRequest(dice: Dice): Wanted {
  const [target, door] = dice.pick(ASKED);
  const body = dice.chance(0.2) ? dice.bytes(dice.below(300)) : Buffer.alloc(0);
  return { method: dice.pick(METHODS), target, headers: [['Host', 'fuzz']], body, door };
}

const FORMS: readonly [string, ...string[]] = [
  'user=admin&password=wrong',
  `user=admin&password=${DASHBOARD_PASSWORD}`,
  'user=&password=',
  'password',
  'user=admin&password=%ff%00%',
  `user=${'a'.repeat(5000)}`,
  '__proto__=1&user=admin',
];

export function loginRequest(dice: Dice): Wanted {
  const form = dice.chance(0.2) ? dice.bytes(dice.below(100)) : Buffer.from(dice.pick(FORMS));
  return {
    method: 'POST',
    target: '/dashboard/login',
    headers: [
      ['Host', 'fuzz'],
      ['Content-Type', 'application/x-www-form-urlencoded'],
    ],
    body: form,
    door: 'page',
  };
}

/** The whole request, its length said as it is. */
export function written({ method, target, headers, body }: Wanted): Buffer {
  const length: [string, string][] =
    body.byteLength > 0 || method === 'POST' ? [['Content-Length', String(body.byteLength)]] : [];
  return withHead(method, target, [...headers, ...length], body);
}

export function withHead(method: string, target: string, headers: [string, string][], body: Buffer): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`, 'latin1'), body]);
}
