import { setTimeout as sleep } from 'node:timers/promises';
import { closedLoop, type Endpoint } from './closed-loop.js';
import { GrpcWire, grpcRequest } from './grpc-wire.js';
import type { BytesBody, LoadReport, LoadSpec } from './messages.js';
import { openLoop } from './open-loop.js';
import { Recorder } from './recorder.js';
import { ResponseParser } from './response-parser.js';

/** A thread that is busy for more of its time than this has no time to spare. */
const MOST_OF_A_CORE = 0.85;
/** Longer than any pause of a process that keeps its rate on a full machine. */
const MOST_BEHIND_MS = 250;

/** Loads a server as the spec says. `onMeasuring` is called when the warm-up is over. */
export async function generate(spec: LoadSpec, onMeasuring: () => void): Promise<LoadReport> {
  const recorder = new Recorder(spec);
  const endpoint = endpointOf(spec);
  const { loop } = spec;
  const running =
    loop.kind === 'closed' ? closedLoop(endpoint, loop, recorder) : openLoop(endpoint, loop, recorder);
  await running.ready;
  await sleep(spec.warmUpSeconds * 1000);
  onMeasuring();
  recorder.begin();
  await sleep(spec.seconds * 1000);
  recorder.end();
  await running.stop();
  recorder.fail('unanswered', running.unanswered);
  const report = { ...recorder.report(), lateShare: running.lateShare };
  const generatorLimit = limitOf(report.cpuMs, spec.seconds, running.behindMs);
  return { ...report, ...(generatorLimit ? { generatorLimit } : {}) };
}

/** Why it was the generator that could send no more, if it was: one thread has one core. */
export function limitOf(cpuMs: number, seconds: number, behindMs: number): string | undefined {
  if (behindMs > MOST_BEHIND_MS) {
    return `it was ${behindMs.toFixed(0)} ms behind its own schedule when it stopped`;
  }
  const ownCore = cpuMs / (seconds * 1000);
  if (ownCore < MOST_OF_A_CORE) return undefined;
  return `it used ${(ownCore * 100).toFixed(0)}% of its core`;
}

function endpointOf({ url, otherUrls = [], bodies, wire }: LoadSpec): Endpoint {
  const { host, pathname } = new URL(url);
  const addresses = [url, ...otherUrls].map((each) => {
    const { hostname, port } = new URL(each);
    return { host: hostname, port: Number(port) };
  });
  if (wire === 'grpc') {
    const requests = bodies.map((body) => grpcRequest(host, pathname, bytesOf(body)));
    return { addresses, requests, newWire: () => new GrpcWire() };
  }
  const requests = bodies.map((body) => httpRequest(host, pathname, body));
  return { addresses, requests, newWire: () => new ResponseParser() };
}

const bytesOf = (body: string | BytesBody): Buffer =>
  typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.base64, 'base64');

function httpRequest(host: string, path: string, body: string | BytesBody): Buffer {
  const bytes = bytesOf(body);
  const own = typeof body === 'string' ? undefined : body.headers;
  const headers = { Host: host, 'Content-Type': 'application/json', ...own };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\n${lines.join('')}Content-Length: ${bytes.byteLength}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes]);
}
