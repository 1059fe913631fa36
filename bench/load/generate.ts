import { setTimeout as sleep } from 'node:timers/promises';
import { closedLoop, type Endpoint } from './closed-loop.js';
import type { LoadReport, LoadSpec } from './messages.js';
import { openLoop } from './open-loop.js';
import { Recorder } from './recorder.js';

/** Loads a server as the spec says. `onMeasuring` is called when the warm-up is over. */
export async function generate(spec: LoadSpec, onMeasuring: () => void): Promise<LoadReport> {
  const recorder = new Recorder(spec);
  const endpoint = endpointOf(spec);
  const { loop } = spec;
  const running =
    loop.kind === 'closed' ? closedLoop(endpoint, loop, recorder) : openLoop(endpoint, loop, recorder);
  await sleep(spec.warmUpSeconds * 1000);
  onMeasuring();
  recorder.begin();
  await sleep(spec.seconds * 1000);
  recorder.end();
  await running.stop();
  recorder.fail('unanswered', running.unanswered);
  const { generatorLimit } = running;
  return { ...recorder.report(), ...(generatorLimit ? { generatorLimit } : {}) };
}

function endpointOf({ url, bodies }: LoadSpec): Endpoint {
  const { hostname, port, host, pathname } = new URL(url);
  const requests = bodies.map((text) => {
    const body = Buffer.from(text);
    const head =
      `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.byteLength}\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), body]);
  });
  return { host: hostname, port: Number(port), requests };
}
