import { connect } from 'node:net';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness } from '../test-support/harness.js';
import { identityModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';

/** Everything that a connection answers to these bytes, until it is closed. */
function ask({ host, port }: Gateway, bytes: string, end = false): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, host);
    socket.setEncoding('latin1').on('data', (text) => {
      answer += text;
    });
    socket.on('error', reject).on('close', () => resolve(answer));
    if (end) socket.end(bytes, 'latin1');
    else socket.write(bytes, 'latin1');
  });
}

/** Status and code of each answer. */
function errorsIn(answer: string): [number, string | undefined][] {
  return answer
    .split(/(?=HTTP\/1\.1 )/)
    .map((each) => [Number(each.slice(9, 12)), /"code":"(\w+)"/.exec(each)?.[1]]);
}

describe('what never becomes a request', () => {
  const harness = new Harness();
  const model = uniqueName('unreadable');
  let gateway: Gateway;
  before(async () => {
    await harness.worker(identityModel(model));
    gateway = await harness.gateway();
  });
  after(() => harness.release());

  const get = 'GET /v2/health/live HTTP/1.1\r\nHost: x\r\n';
  const post = `POST /v1/models/${model}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
  const cases: [string, string, number, string][] = [
    ['no HTTP at all', '\u0016\u0003\u0001\u0000\r\n\r\n', 400, 'invalid_http'],
    ['a header without a colon', `${get}nonsense\r\n\r\n`, 400, 'invalid_http'],
    ['two lengths', `${get}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400, 'invalid_http'],
    ['a chunk without a size', `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, 400, 'invalid_http'],
    ['headers over the limit', `${get}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['a tunnel', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', 405, 'method_not_allowed'],
    ['no Host', 'GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'invalid_http'],
  ];
  for (const [what, bytes, status, code] of cases) {
    it(`is refused with an error of our shape, and closed: ${what}`, async () => {
      const answer = await ask(gateway, bytes);
      expect(errorsIn(answer)).to.deep.equal([[status, code]]);
      expect(answer).to.match(/\r\nConnection: close\r\n/i);
      expect(answer).to.match(/\r\nContent-Type: application\/problem\+json\r\n/);
    });
  }

  it('is answered behind the requests before it', async () => {
    const body = '{"inputs":{"bytes":["a"]}}';
    const valid = `${post}Content-Length: ${body.length}\r\n\r\n${body}`;
    const answer = await ask(gateway, `${valid}${valid}garbage\r\n\r\n`);
    expect(errorsIn(answer)).to.deep.equal([
      [200, undefined],
      [200, undefined],
      [400, 'invalid_http'],
    ]);
  });

  it('may end in the middle', async () => {
    expect(errorsIn(await ask(gateway, `${post}Content-Length: 10\r\n\r\n{`, true))).to.deep.equal([
      [400, 'invalid_http'],
    ]);
  });

  it('is not what an unknown expectation makes of a request', async () => {
    expect(errorsIn(await ask(gateway, `${get}Expect: wonders\r\nConnection: close\r\n\r\n`))).to.deep.equal([
      [200, undefined],
    ]);
  });
});
