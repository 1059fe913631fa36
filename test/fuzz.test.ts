import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { parseAnswers } from './fuzz/answers.js';
import { caseOf } from './fuzz/cases.js';
import { fuzz } from './fuzz/fuzz.js';
import { faultOf } from './fuzz/judge.js';
import { Lane } from './fuzz/lane.js';

const REQUESTS = 10_000;

function answer(status: number, body: string, type = 'application/problem+json', more = ''): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status} X\r\nContent-Type: ${type}\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`,
  );
}

function judged(...wire: Parameters<typeof answer>): string | undefined {
  const [only] = parseAnswers(answer(...wire)).answers;
  if (!only) throw new Error('no answer was read');
  return faultOf(only, 'native', 'POST');
}

describe("the fuzzer's judge", () => {
  it('takes errors with a known code, and values', () => {
    expect(judged(400, '{"code":"invalid_json"}')).to.equal(undefined);
    expect(judged(503, '{"code":"no_worker"}')).to.equal(undefined);
    expect(judged(200, '{"outputs":[]}', 'application/json; charset=utf-8')).to.equal(undefined);
  });

  it("refuses a server's own fault, an unknown code, another's id, a leak, an error without a shape", () => {
    expect(judged(500, '{"code":"internal"}')).to.contain('status 500');
    expect(judged(502, '{"code":"no_worker"}')).to.contain('status 502');
    expect(judged(400, '{"code":"no_such_code"}')).to.contain('error code unknown');
    expect(judged(404, '{"code":"invalid_json"}')).to.contain('error code unknown');
    const id = 'X-Request-Id: a\r\n';
    expect(judged(400, '{"code":"invalid_json","requestId":"b"}', undefined, id)).to.contain('another');
    expect(judged(400, '{"code":"invalid_json","detail":"at f (/x.js:1)"}')).to.contain('inside');
    expect(judged(400, '')).to.contain('no object');
    expect(judged(400, '<p>no', 'text/html')).to.contain('a page');
    expect(judged(200, '{"outputs":', 'application/json')).to.contain('no JSON');
  });

  it("takes OpenAI's errors where they belong, whole and with a known code", () => {
    const errorOf = (error: object): string => JSON.stringify({ error });
    const whole = { message: 'm', type: 'invalid_request_error', param: null, code: 'invalid_json' };
    const at = (door: 'native' | 'openai', status: number, body: string) => {
      const [only] = parseAnswers(answer(status, body, 'application/json')).answers;
      if (!only) throw new Error('no answer was read');
      return faultOf(only, door, 'POST');
    };
    expect(at('openai', 400, errorOf(whole))).to.equal(undefined);
    expect(at('native', 400, errorOf(whole))).to.contain("another door's shape");
    expect(at('openai', 404, errorOf(whole))).to.contain('error code unknown');
    expect(at('openai', 400, errorOf({ ...whole, message: '' }))).to.contain('no known shape');
    expect(at('openai', 400, '{"code":"invalid_json"}')).to.contain("another door's shape");
  });

  it('reads answers one behind another, and nothing that is no HTTP', () => {
    const one = answer(200, '{}', 'application/json');
    expect(parseAnswers(Buffer.concat([one, one])).answers.map(({ status }) => status)).to.deep.equal([
      200, 200,
    ]);
    expect(parseAnswers(Buffer.concat([one, one.subarray(0, -1)]))).to.include({ rest: one.length - 1 });
    const continued = Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'), one]);
    expect(parseAnswers(continued).answers.map(({ status }) => status)).to.deep.equal([200]);
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
    expect(parseAnswers(Buffer.from(chunked)).answers[0]?.body.toString()).to.equal('abc');
    for (const wrong of [
      'HTTP/1.1 200 OK\r\n\r\n',
      'HTTP/1.1 OK\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx y\r\n\r\n',
    ]) {
      expect(parseAnswers(Buffer.from(wrong)).fault, wrong).to.be.a('string');
    }
  });
});

describe("the fuzzer's lane", () => {
  const ok = answer(200, '{}', 'application/json').toString();
  const servers: Server[] = [];
  const sockets: Socket[] = [];
  after(() => {
    for (const server of servers) server.close();
    for (const socket of sockets) socket.destroy();
  });
  /** Released with the others, its connections too: some of these servers never end one. */
  async function listening(server: Server): Promise<number> {
    servers.push(server.on('connection', (socket) => sockets.push(socket)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }

  /** What it finds in a server that does this with each connection. */
  async function found(serve: (socket: Socket) => void, raw = false): Promise<string | undefined> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => serve(socket));
    });
    const lane = new Lane('127.0.0.1', await listening(server));
    const { methods, ...request } = caseOf(1, 0);
    const reply = await lane.send({ ...request, raw, ...(raw ? {} : { methods: ['GET'] }) });
    lane.close();
    return reply.fault;
  }

  it('takes one whole answer, and for what may be no request none at all', async () => {
    expect(await found((socket) => socket.write(ok))).to.equal(undefined);
    expect(await found((socket) => socket.end(), true)).to.equal(undefined);
  });

  it('finds no answer, half of one, one too many, and what is no HTTP', async () => {
    expect(await found((socket) => socket.destroy())).to.contain('without an answer');
    expect(await found((socket) => socket.end(ok.slice(0, -1)))).to.contain('in the middle');
    expect(await found((socket) => socket.write(ok + ok))).to.contain('more came');
    expect(await found((socket) => socket.write('oops\r\n\r\n'))).to.contain('a status line');
    expect(await found((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'), true)).to.contain(
      'without a length',
    );
  });

  it('finds a connection that stays open when its client has no more to say', async () => {
    const open = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined).resume();
    });
    const lane = new Lane('127.0.0.1', await listening(open));
    const { methods: _, ...request } = caseOf(1, 0);
    const { fault } = await lane.send({ ...request, raw: true });
    lane.close();
    expect(fault).to.contain('not closed');
  });
});

describe('the whole server under mutated requests', function () {
  // On a busy machine; alone it takes a quarter of that.
  this.timeout(120_000);

  it('makes the same ones from the same seed', () => {
    for (let index = 0; index < 200; index++) {
      const bytes = (seed: number) => caseOf(seed, index).bytes.toString('latin1');
      expect(bytes(1)).to.equal(bytes(1));
    }
    expect(caseOf(1, 0).bytes.equals(caseOf(2, 0).bytes)).to.equal(false);
  });

  it('answers each as it should, stays up, and is right among them and afterwards', async () => {
    const report = await fuzz({ requests: REQUESTS, seed: 1, say: () => undefined });
    expect(report.faults.slice(0, 10)).to.deep.equal([]);
    expect(report.requests).to.equal(REQUESTS);
    // Every kind of outcome was met: a fuzzer that only sees one of them tests little.
    for (const status of [200, 303, 400, 401, 404, 405, 413, 415, 429, 431, 501]) {
      expect(report.statuses[status], `answers ${status}`).to.be.above(0);
    }
  });
});
