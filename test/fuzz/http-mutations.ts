import { METHODS } from 'node:http';
import type { Dice } from '../support/dice.js';
import { type Door, type Wanted, withHead, written } from './requests.js';

/** Bytes for a connection of their own, and what has to come back. */
export interface RawCase {
  bytes: Buffer;
  what: string;
  /** Methods of the requests that must be answered, in order; undefined: nobody can tell how many there are. */
  methods?: string[];
  /** In whose shape errors are; a request that the server can't make out may be answered in any. */
  door: Door;
}

const CRLF = '\r\n';
type RawMutation = (request: Wanted, dice: Dice) => RawCase;

const line = (name: string, value: string): string => `${name}: ${value}${CRLF}`;

/** The request with lines of any bytes put behind its headers. */
function withLines({ method, target, headers, body }: Wanted, lines: string, what: string): RawCase {
  const own = headers.map(([name, value]) => line(name, value)).join('');
  const length = /content-length|transfer-encoding/i.test(lines)
    ? ''
    : line('Content-Length', String(body.byteLength));
  const head = `${method} ${target} HTTP/1.1${CRLF}${own}${length}${lines}${CRLF}`;
  return { bytes: Buffer.concat([Buffer.from(head, 'latin1'), body]), what, door: 'any' };
}

const HEADER_LINES: readonly [string, ...string[]] = [
  `no colon here${CRLF}`,
  `: no name${CRLF}`,
  `Name : space before the colon${CRLF}`,
  ` folded${CRLF}`,
  `X-A: a${CRLF}\tfolded${CRLF}`,
  `X-A: a\u0000b${CRLF}`,
  `X-A: \u0001\u007f${CRLF}`,
  `X-\u00ff: a${CRLF}`,
  `X-A: \u00ff\u00fe${CRLF}`,
  `X-A: a\rb${CRLF}`,
  'X-A: only a line feed\n',
  `${'N'.repeat(9000)}: a${CRLF}`,
  `X-A: ${'v'.repeat(9000)}${CRLF}`,
  `X-A: ${'v'.repeat(20_000)}${CRLF}`,
  `X-A: ${'v'.repeat(200_000)}${CRLF}`,
  'A: b\r\n'.repeat(1500),
  'A: b\r\n'.repeat(5000),
  line('Host', 'another'),
  line('Content-Type', 'text/plain'),
  line('Content-Encoding', 'gzip'),
  line('Content-Encoding', ''),
  line('Content-Encoding', 'deflate'),
  line('Content-Encoding', 'gzip, gzip'),
  line('Accept-Encoding', 'identity;q=0'),
  line('Accept-Encoding', ';q=,gzip;q=nan,,*;q=9'),
  line('X-Request-Id', 'mine'),
  line('X-Request-Id', 'a') + line('X-Request-Id', 'b'),
  line('X-Request-Id', '\u00ff\u0001'),
  line('X-Request-Id', 'i'.repeat(5000)),
  line('Origin', 'https://a.example') + line('Access-Control-Request-Method', 'POST'),
  line('Expect', '100-continue'),
  line('Expect', 'the unexpected'),
  line('Connection', 'close'),
  line('Connection', 'upgrade') + line('Upgrade', 'websocket') + line('Sec-WebSocket-Version', '13'),
  line('Connection', 'Upgrade, HTTP2-Settings') + line('Upgrade', 'h2c') + line('HTTP2-Settings', 'AAMAAABk'),
  line('Connection', 'host, content-length, transfer-encoding'),
  line('Keep-Alive', 'timeout=0, max=0'),
  line('Prefer', 'wait=0'),
  line('Prefer', 'wait=999999999'),
  line('Prefer', 'wait=-1, wait="x", respond-async'),
  line('Traceparent', '00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff'),
  line('Traceparent', '\u00ff'.repeat(500)),
  line('Authorization', 'Bearer '),
  line('Authorization', `Basic ${'='.repeat(4000)}`),
  line('Authorization', 'Bearer a') + line('Authorization', 'Bearer b'),
  line('Idempotency-Key', ''),
  line('Idempotency-Key', 'k'.repeat(5000)),
  line('Inference-Header-Content-Length', '10'),
  line('Inference-Header-Content-Length', '-1'),
  line('Cookie', 'millrace_session'),
  line('Cookie', `millrace_session=${'%'.repeat(3000)}; ; =;`),
  line('X-Forwarded-For', '\u0000'),
  line('X-Http-Method-Override', 'DELETE'),
  line('Range', 'bytes=0-18446744073709551615'),
  line('If-None-Match', '*'),
  line('Accept', 'image/png;q=nan'),
  line('Trailer', 'Content-Length'),
  line('TE', 'trailers, deflate;q=0.5'),
];

const LENGTHS: readonly [string, ...string[]] = [
  '-1',
  'abc',
  '',
  '+5',
  '0x10',
  '5, 5',
  '5 5',
  '1e3',
  '99999999999999999999999999',
  '18446744073709551616',
  '9007199254740993',
  '0',
  '1',
];

const CHUNKINGS: readonly [(body: string) => string, ...((body: string) => string)[]] = [
  (body) => `${body.length.toString(16)}${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `${body.length.toString(16)};ext="v";x${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) =>
    `000${body.length.toString(16).toUpperCase()}${CRLF}${body}${CRLF}0${CRLF}X-Trailer: 1${CRLF}${CRLF}`,
  (body) => `${[...body].map((each) => `1${CRLF}${each}${CRLF}`).join('')}0${CRLF}${CRLF}`,
  (body) => `${(body.length + 5).toString(16)}${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `${Math.max(0, body.length - 3).toString(16)}${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `ffffffffffffffff${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `fffffffffffffffff${CRLF}${body}`,
  (body) => `-1${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `zz${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `${CRLF}${body}`,
  (body) => `${body.length.toString(16)}\n${body}\n0\n\n`,
  (body) => `${body.length.toString(16)}${CRLF}${body}${CRLF}`,
  (body) => `${body.length.toString(16)};${'e'.repeat(100_000)}${CRLF}${body}${CRLF}0${CRLF}${CRLF}`,
  (body) => `0${CRLF}${'X: y\r\n'.repeat(5000)}${CRLF}${body}`,
];

const CODINGS: readonly [string, ...string[]] = [
  line('Transfer-Encoding', 'chunked'),
  line('Transfer-Encoding', 'chunked'),
  line('Transfer-Encoding', 'gzip, chunked'),
  line('Transfer-Encoding', 'chunked, gzip'),
  line('Transfer-Encoding', 'identity'),
  line('Transfer-Encoding', ' chunked '),
  line('Transfer-Encoding', 'xchunked'),
  line('Transfer-Encoding', 'chunked') + line('Transfer-Encoding', 'chunked'),
  line('Transfer-Encoding', 'chunked') + line('Content-Length', '5'),
  line('Content-Length', '5') + line('Transfer-Encoding', 'chunked'),
];

const TARGETS: readonly [string, ...string[]] = [
  '',
  ' ',
  '*',
  '/%',
  '/%ff',
  '/%00',
  '/v1/models/%/predict',
  '/v1/models/%ff/predict',
  '/v1/models/%00/predict',
  '/v1/models/..%2f..%2fetc/predict',
  '/v1/models/%2e%2e/predict',
  '/v1/models//predict',
  '/v1/models/identity/versions/%/predict',
  '/v2/models/%c0%ae/infer',
  '/v2/models/identity/infer/',
  '//v2//models',
  '/./v2/../v2/health/live',
  '/v2/health/live?a=%&b[]=1&__proto__[x]=1',
  `/v2/health/live?${'a=b&'.repeat(1000)}`,
  '/v2/health/live#fragment',
  'v2/health/live',
  'http://fuzz/v2/health/live',
  'http://',
  'http://[::1/v2',
  'https://user:pw@fuzz:99999/v2',
  'javascript:alert(1)',
  'fuzz:443',
  '\\v2\\health',
  '/v2/\u0000',
  '/v2/\u00e9\u00ff',
  '/v2/a b',
  '/dashboard/%2e%2e/%2e%2e/package.json',
  '/dashboard/static/%',
  '/dashboard//login',
  `/${'a'.repeat(9000)}`,
  `/${'a'.repeat(70_000)}`,
  `/${'%41'.repeat(3000)}`,
  `/v1/models/${'m'.repeat(5000)}/predict`,
  `/${'/'.repeat(4000)}`,
];

const METHODS_SENT: readonly [string, ...string[]] = [
  'get',
  'G\u0000T',
  'GE T',
  '',
  'X'.repeat(10_000),
  'PRI',
  'CONNECT',
  ...METHODS.filter((method) => method !== 'HEAD'),
];

const VERSIONS: readonly [string, ...string[]] = [
  ' HTTP/1.0',
  ' HTTP/0.9',
  ' HTTP/2.0',
  ' HTTP/1.2',
  ' HTTP/1.10',
  ' HTP/1.1',
  ' http/1.1',
  '',
  ' HTTP/1.1 x',
];

const unread = (what: string, bytes: Buffer): RawCase => ({ bytes, what, door: 'any' });

export const RAW_MUTATIONS: readonly [RawMutation, ...RawMutation[]] = [
  (request, dice) => withLines(request, dice.pick(HEADER_LINES), 'a header line'),
  (request, dice) => withLines(request, dice.pick(HEADER_LINES), 'a header line'),
  (request, dice) =>
    withLines(request, `${dice.bytes(1 + dice.below(60)).toString('latin1')}${CRLF}`, 'garbage for a header'),
  (request, dice) => withLines(request, line('Content-Length', dice.pick(LENGTHS)), 'a wrong length'),
  (request, dice) => {
    const { byteLength } = request.body;
    const length = dice.pick([byteLength + 1 + dice.below(50), Math.max(0, byteLength - 1 - dice.below(50))]);
    return withLines(request, line('Content-Length', String(length)), 'a length that is off');
  },
  (request, dice) => {
    const { byteLength } = request.body;
    const second = dice.pick([byteLength, byteLength + 1]);
    const lines = line('Content-Length', String(byteLength)) + line('Content-Length', String(second));
    return withLines(request, lines, 'two lengths');
  },
  (request, dice) => {
    const body = Buffer.from(dice.pick(CHUNKINGS)(request.body.toString('latin1')), 'latin1');
    return withLines({ ...request, method: 'POST', body }, dice.pick(CODINGS), 'chunks');
  },
  (request, dice) =>
    unread('a target', withHead(request.method, dice.pick(TARGETS), request.headers, Buffer.alloc(0))),
  (request, dice) => unread('a method', written({ ...request, method: dice.pick(METHODS_SENT) })),
  (request, dice) =>
    unread(
      'a version',
      Buffer.from(written(request).toString('latin1').replace(' HTTP/1.1', dice.pick(VERSIONS)), 'latin1'),
    ),
  (request) => unread('no host', written({ ...request, headers: request.headers.slice(1) })),
  (request, dice) => {
    const whole = written(request);
    return unread('cut short', whole.subarray(0, dice.below(whole.byteLength)));
  },
  (request, dice) => {
    const whole = Buffer.from(written(request));
    for (let i = 0; i <= dice.below(5); i++)
      whole[dice.below(Math.min(whole.byteLength, 300))] = dice.below(256);
    return unread('bytes changed', whole);
  },
  (request, dice) => {
    const text = written(request).toString('latin1');
    return unread(
      'line ends',
      Buffer.from(text.replaceAll(CRLF, dice.pick(['\n', '\r', '\r\r\n', '\n\r'])), 'latin1'),
    );
  },
  (request, dice) =>
    unread(
      'empty lines first',
      Buffer.concat([Buffer.from(CRLF.repeat(dice.pick([1, 2, 5000]))), written(request)]),
    ),
  (_request, dice) => unread('random bytes', dice.bytes(dice.below(2000))),
  () => unread('a TLS hello', Buffer.from('16030100c4010000c00303', 'hex')),
  () =>
    unread(
      'an HTTP/2 preface',
      Buffer.from(
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u0000\u0000\u0000\u0004\u0000\u0000\u0000\u0000\u0000',
        'latin1',
      ),
    ),
  (request, dice) => {
    const count = 2 + dice.below(7);
    const bytes = Buffer.concat(Array(count).fill(written(request)));
    return {
      bytes,
      what: `${count} pipelined`,
      methods: Array(count).fill(request.method),
      door: request.door,
    };
  },
  (request, dice) => {
    const whole = written(request);
    return unread('garbage behind a request', Buffer.concat([whole, dice.bytes(1 + dice.below(200)), whole]));
  },
];
