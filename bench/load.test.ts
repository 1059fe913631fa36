import { createServer as createHttp2Server, type IncomingHttpHeaders } from 'node:http2';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { arrivalGapMs, seeded } from '#test/support/random.js';
import { compareAnswers } from './load/answers.js';
import { type Address, Connection } from './load/connection.js';
import { limitOf } from './load/generate.js';
import { GrpcWire, grpcRequest } from './load/grpc-wire.js';
import type { LoadSpec } from './load/messages.js';
import { Recorder } from './load/recorder.js';
import { dechunk, ResponseParser } from './load/response-parser.js';
import { makeSentences, sentenceLengths } from './load/sentences.js';
import { answerCheck } from './serve/minilm.js';

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

describe("the generator's arrivals", () => {
  it('are the same for the same seed', () => {
    const gaps = (seed: number) => {
      const random = seeded(seed);
      return Array.from({ length: 100 }, () => arrivalGapMs(random, 500));
    };
    expect(gaps(1)).to.deep.equal(gaps(1));
    expect(gaps(1)).not.to.deep.equal(gaps(2));
  });

  it('come at the mean rate, and as spread out as independent ones are', () => {
    const random = seeded(3);
    const gaps = Array.from({ length: 50_000 }, () => arrivalGapMs(random, 500));
    expect(mean(gaps)).to.be.closeTo(2, 0.04);
    // The deviation of an exponential distribution is its mean.
    expect(Math.sqrt(mean(gaps.map((gap) => (gap - 2) ** 2)))).to.be.closeTo(2, 0.06);
  });
});

describe("the generator's sentences", () => {
  it('have 17 tokens or so, 5 to 128, and are the same each time', () => {
    const lengths = sentenceLengths(4000, 7);
    expect(mean(lengths)).to.be.within(16.5, 18.5);
    expect(Math.min(...lengths)).to.equal(5);
    expect(Math.max(...lengths)).to.be.within(60, 128);
    const words = ['one', 'two', 'three'];
    const sentences = makeSentences(words, 50);
    expect(sentences).to.deep.equal(makeSentences(words, 50));
    expect(sentences.map((each) => each.split(' ').length + 2)).to.deep.equal(sentenceLengths(50, 7));
  });
});

describe("the generator's parser", () => {
  const answer = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}';

  it('finds the end of an answer wherever it is cut', () => {
    for (let cut = 1; cut < answer.length; cut++) {
      const parser = new ResponseParser();
      parser.expect(true);
      expect(parser.feed(Buffer.from(answer.slice(0, cut))), `cut at ${cut}`).to.equal(false);
      expect(parser.feed(Buffer.from(answer.slice(cut))), `cut at ${cut}`).to.equal(true);
      expect(parser.status).to.equal(200);
      expect(parser.body.toString()).to.equal('{"a":1}');
    }
  });

  it('follows chunks wherever they are cut', () => {
    const chunked =
      'HTTP/1.1 503 No\r\nconnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n';
    for (let cut = 1; cut < chunked.length; cut++) {
      const parser = new ResponseParser();
      parser.expect(true);
      expect(parser.feed(Buffer.from(chunked.slice(0, cut))), `cut at ${cut}`).to.equal(false);
      expect(parser.feed(Buffer.from(chunked.slice(cut))), `cut at ${cut}`).to.equal(true);
      expect(parser.body.toString()).to.equal('abc0123456789');
      expect([parser.status, parser.closes]).to.deep.equal([503, true]);
    }
    expect(dechunk(Buffer.from('5\r\nabc'))).to.equal(undefined);
  });

  it('reads what the server says that it took', () => {
    const parser = new ResponseParser();
    parser.expect(false);
    parser.feed(Buffer.from(answer));
    expect(parser.serverMs).to.equal(undefined);
    parser.expect(false);
    const head =
      'HTTP/1.1 429 No\r\nServer-Timing: queue;dur=3, total;dur=0.125\r\nContent-Length: 2\r\n\r\n';
    parser.feed(Buffer.from(`${head}{}`));
    expect(parser.serverMs).to.equal(0.125);
  });

  it('refuses what it cannot follow', () => {
    const parser = new ResponseParser();
    parser.expect(false);
    expect(() => parser.feed(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))).to.throw('without a length');
    parser.expect(false);
    expect(() => parser.feed(Buffer.from(`${answer}x`))).to.throw('more than one');
  });
});

describe("the generator's connection", () => {
  const reply = (connection: string) => `HTTP/1.1 200 OK\r\n${connection}Content-Length: 2\r\n\r\n{}`;

  async function listening(
    connection: string,
  ): Promise<{ server: Server; address: Address; asked(): number }> {
    let asked = 0;
    const server = createServer((socket) => {
      socket
        .on('error', () => undefined)
        .on('data', () => {
          asked++;
          socket.write(reply(connection));
        });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { server, address: { host: '127.0.0.1', port }, asked: () => asked };
  }

  it('turns from a server that closes or refuses to the next, and loses no request', async () => {
    const closing = await listening('Connection: close\r\n');
    const staying = await listening('');
    const gone = await listening('');
    await new Promise((resolve) => gone.server.close(resolve));
    const addresses = [gone.address, closing.address, staying.address];
    const lost: string[] = [];
    let answered = 0;
    await new Promise<void>((resolve) => {
      const connection = new Connection(
        addresses,
        0,
        {
          onReady: (ready) => {
            if (answered < 5) ready.send(Buffer.from('x'), false);
            else resolve();
          },
          onAnswer: () => answered++,
          onLost: (_, reason) => lost.push(reason),
        },
        () => new ResponseParser(),
      );
      after(() => connection.close());
    });
    expect(lost).to.deep.equal([]);
    expect([closing.asked(), staying.asked()]).to.deep.equal([1, 4]);
    closing.server.close();
    staying.server.close();
  });
});

describe("the generator's gRPC", () => {
  /** A call as any HTTP/2 server of gRPC hears it. */
  interface Heard {
    headers: IncomingHttpHeaders;
    message: Buffer;
  }

  async function calls(
    count: number,
    answer: (call: number) => { message?: Buffer; status: string },
  ): Promise<{ heard: Heard[]; answers: { status: number; body: Buffer | undefined }[] }> {
    const heard: Heard[] = [];
    const server = createHttp2Server();
    server.on('stream', (stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { message, status } = answer(heard.length);
        heard.push({ headers, message: Buffer.concat(chunks).subarray(5) });
        const trailers = { 'grpc-status': status, 'grpc-message': 'as it is' };
        stream.respond(
          { ':status': 200, 'content-type': 'application/grpc', ...(message ? {} : trailers) },
          { waitForTrailers: message !== undefined, endStream: message === undefined },
        );
        if (!message) return;
        stream.on('wantTrailers', () => stream.sendTrailers(trailers));
        const head = Buffer.alloc(5);
        head.writeUInt32BE(message.byteLength, 1);
        stream.end(Buffer.concat([head, message]));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const request = grpcRequest(`127.0.0.1:${port}`, '/a.B/C', Buffer.from('hello'));
    const answers: { status: number; body: Buffer | undefined }[] = [];
    await new Promise<void>((resolve, reject) => {
      const connection = new Connection(
        [{ host: '127.0.0.1', port }],
        0,
        {
          onReady: (ready) => (answers.length < count ? ready.send(request, true) : resolve()),
          onAnswer: (_, status, body) => answers.push({ status, body }),
          onLost: (_, reason) => reject(new Error(reason)),
        },
        () => new GrpcWire(),
      );
      after(() => {
        connection.close();
        server.close();
      });
    });
    return { heard, answers };
  }

  it('is understood by an HTTP/2 server, and understands its answers', async () => {
    const large = Buffer.alloc(200_000, 'x');
    const { heard, answers } = await calls(3, (call) => ({
      message: call === 1 ? large : Buffer.from(`answer ${call}`),
      status: '0',
    }));
    expect(heard.map(({ message }) => message.toString())).to.deep.equal(Array(3).fill('hello'));
    expect(heard[0]?.headers).to.include({
      ':method': 'POST',
      ':scheme': 'http',
      ':path': '/a.B/C',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    expect(answers[0]?.body?.toString()).to.equal('answer 0');
    expect(answers[1]?.body?.equals(large)).to.equal(true);
    expect(answers[2]?.body?.toString()).to.equal('answer 2');
  });

  it('tells refusals from answers', async () => {
    const statuses = ['8', '14', '4', '3', '13'];
    const { answers } = await calls(statuses.length, (call) => ({ status: statuses[call] ?? '' }));
    expect(answers.map(({ status }) => status)).to.deep.equal([429, 503, 504, 400, 500]);
  });

  it('goes on beyond the bytes that a connection may send at first', async () => {
    const { answers } = await calls(300, () => ({ message: Buffer.alloc(1000), status: '0' }));
    expect(answers.every(({ status, body }) => status === 200 && body?.byteLength === 1000)).to.equal(true);
  });
});

describe("the generator's check of answers", () => {
  const check = { path: ['outputs'], tolerance: 0.01, expected: { 0: [[1, 0]], 1: [[0.995, 0.005]] } };
  const compare = (bodyIndex: number, outputs: unknown) =>
    compareAnswers([{ bodyIndex, body: Buffer.from(JSON.stringify({ outputs })) }], check).wrong;

  it('takes what is within the tolerance and nearest to its own vector', () => {
    expect(compare(0, [[1, 0]])).to.equal(0);
    expect(compare(0, [1.001, 0])).to.equal(0);
    expect(compare(0, [[0.995, 0.005]]), 'the answer of the other').to.equal(1);
    expect(compare(0, [[1, 0.5]]), 'too far off').to.equal(1);
    expect(compare(0, [[1]]), 'too short').to.equal(1);
    expect(compare(0, []), 'nothing').to.equal(1);
  });

  it('reads vectors of float32 in base64, and at the end of what is binary', () => {
    const floats = Buffer.from(new Float32Array([1, 0]).buffer);
    const inJson = Buffer.from(JSON.stringify({ outputs: floats.toString('base64') }));
    expect(compareAnswers([{ bodyIndex: 0, body: inJson }], check).wrong).to.equal(0);
    expect(compareAnswers([{ bodyIndex: 1, body: inJson }], check).wrong).to.equal(1);
    const binary = { ...check, path: 'floats' as const };
    const behind = Buffer.concat([Buffer.from('{"a":1}'), floats]);
    expect(compareAnswers([{ bodyIndex: 0, body: behind }], binary).wrong).to.equal(0);
    expect(compareAnswers([{ bodyIndex: 1, body: behind }], binary).wrong).to.equal(1);
    expect(compareAnswers([{ bodyIndex: 0, body: floats.subarray(4) }], binary).wrong).to.equal(1);
  });

  it('knows the vectors of requests whose sentences are all known', () => {
    const sentences = ['a', 'b', 'c', 'd'];
    const vectors = new Map([
      ['a', [1]],
      ['b', [2]],
      ['c', [3]],
    ]);
    expect(answerCheck(sentences, vectors, 2).expected).to.deep.equal({ 0: [[1], [2]] });
    expect(answerCheck(sentences, vectors).expected).to.deep.equal({ 0: [[1]], 1: [[2]], 2: [[3]] });
  });
});

describe("the generator's recorder", () => {
  const spec = (loop: LoadSpec['loop']): LoadSpec => ({
    url: 'http://127.0.0.1:1/',
    bodies: ['{}'],
    itemsPerRequest: 2,
    loop,
    warmUpSeconds: 0,
    seconds: 1,
  });

  it('counts an open loop by arrival: also what is answered after the end, not what came before', () => {
    const recorder = new Recorder(spec({ kind: 'open', requestsPerSecond: 1, connections: 1, seed: 1 }));
    const early = performance.now() - 1;
    recorder.begin();
    const within = performance.now();
    recorder.answer(200, { since: early, sentAt: early, bodyIndex: 0 }, undefined);
    recorder.end();
    recorder.answer(200, { since: within, sentAt: within, bodyIndex: 0 }, undefined);
    recorder.answer(429, { since: within, sentAt: within, bodyIndex: 0 }, undefined);
    const { answered, failures, itemsPerSecond, requestsPerSecond } = recorder.report();
    expect(answered).to.equal(1);
    expect(failures).to.deep.equal({ 429: 1 });
    expect(itemsPerSecond).to.equal(2 * requestsPerSecond);
  });

  it('counts answers past the deadline, and what the server took to refuse', () => {
    const recorder = new Recorder({ ...spec({ kind: 'closed', connections: 1 }), deadlineMs: 500 });
    recorder.begin();
    const now = performance.now();
    recorder.answer(200, { since: now, sentAt: now, bodyIndex: 0 }, undefined);
    recorder.answer(200, { since: now - 600, sentAt: now - 600, bodyIndex: 0 }, undefined);
    recorder.answer(429, { since: now - 600, sentAt: now - 600, bodyIndex: 0, serverMs: 4 }, undefined);
    recorder.answer(504, { since: now, sentAt: now, bodyIndex: 0, serverMs: 2000 }, undefined);
    const { answered, pastDeadline, refusedMs, failures } = recorder.report();
    expect([answered, pastDeadline]).to.deep.equal([2, 1]);
    expect(refusedMs.max).to.be.closeTo(4, 0.01);
    expect(failures).to.deep.equal({ 429: 1, 504: 1 });
  });

  it('counts a closed loop by answer', () => {
    const recorder = new Recorder(spec({ kind: 'closed', connections: 1 }));
    const early = performance.now() - 1;
    recorder.answer(200, { since: early, sentAt: early, bodyIndex: 0 }, undefined);
    recorder.begin();
    recorder.answer(200, { since: early, sentAt: early, bodyIndex: 0 }, undefined);
    recorder.end();
    recorder.answer(200, { since: early, sentAt: early, bodyIndex: 0 }, undefined);
    expect(recorder.report().answered).to.equal(1);
  });

  it('says when its own thread had no time to spare', () => {
    expect(limitOf(2000, 10, 20)).to.equal(undefined);
    expect(limitOf(9500, 10, 0)).to.match(/95% of its core/);
    expect(limitOf(2000, 10, 900)).to.match(/900 ms behind its own schedule/);
  });

  it('tells percentiles to three digits', () => {
    const recorder = new Recorder(spec({ kind: 'closed', connections: 1 }));
    recorder.begin();
    // Answers that took 1 to 1000 s, or nearly so.
    for (let i = 1; i <= 100; i++)
      recorder.answer(
        200,
        { since: performance.now() - i * 1000, sentAt: performance.now() - i * 1000, bodyIndex: 0 },
        undefined,
      );
    recorder.end();
    const { p50, p99 } = recorder.report().latencyMs;
    expect(p50 / 50_000).to.be.closeTo(1, 0.002);
    expect(p99 / 99_000).to.be.closeTo(1, 0.002);
  });
});
