import { loadSettings, type ModelDescription } from '@millrace/shared';
import { expect } from 'chai';
import { curlLine, summary } from './summary.js';

const TEXT: ModelDescription = {
  name: 'sentences',
  version: '1',
  task: 'text-embedding',
  platform: 'onnxruntime_onnx',
  inputs: [{ name: 'text', datatype: 'BYTES', shape: [-1] }],
  outputs: [{ name: 'embedding', datatype: 'FP32', shape: [-1, 384] }],
  limits: { maxRequestItems: 10 },
};

const WORKERS = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'];

const PLAIN: ModelDescription = {
  ...TEXT,
  name: 'plain',
  task: 'tensor',
  inputs: [
    { name: 'a', datatype: 'INT64', shape: [-1, 2] },
    { name: 'b', datatype: 'BOOL', shape: [-1, -1], optional: true },
  ],
};

describe('what a start ends with', () => {
  it('says what is served, where, and how to log in', () => {
    const settings = loadSettings({ MILLRACE_DASHBOARD_PASSWORD: 'secret' });
    const url = 'http://127.0.0.1:8080';
    const grpc = '127.0.0.1:8001';
    const served = {
      url,
      grpc,
      models: [TEXT, PLAIN],
      workerUrls: WORKERS,
      settings,
      passwordFile: 'kept/here',
    };
    const lines = summary(served);
    const text = lines.join('\n');
    expect(text).to.contain('Millrace serves http://127.0.0.1:8080');
    expect(text).to.contain('sentences  text-embedding: text BYTES[*] -> embedding FP32[*,384]');
    expect(text).to.contain('plain      tensor: a INT64[*,2], b BOOL[*,*] (optional) -> ');
    expect(lines).to.include('gRPC       127.0.0.1:8001');
    expect(lines).to.include('API        http://127.0.0.1:8080/docs');
    expect(lines).to.include('Dashboard  http://127.0.0.1:8080/dashboard');
    expect(lines.map((line) => line.trim())).to.include.members([
      'user admin',
      'password secret',
      'kept in kept/here',
    ]);
    expect(lines).to.include('Worker 1   http://127.0.0.1:9001/metrics, http://127.0.0.1:9001/health/ready');
    expect(text).to.match(/^Worker 2 +http:\/\/127\.0\.0\.1:9002\/metrics/m);
    expect(lines.slice(lines.indexOf('Try it:') + 2).filter((line) => line.length > 80)).to.deep.equal([]);
  });

  it('shows how to ask through a unix socket, where there is one', () => {
    const url = 'http://127.0.0.1:8080';
    const served = { url, models: [TEXT], workerUrls: WORKERS, passwordFile: undefined };
    const text = (flags: object): string =>
      summary({ ...served, settings: loadSettings({}, flags) }).join('\n');
    expect(text({ socketPath: "/run/it's" })).to.contain(
      "curl -s --unix-socket '/run/it'\\''s' http://localhost/v2/health/ready",
    );
    expect(text({})).not.to.contain('ocket');
  });

  it('does not repeat a password that the person set', () => {
    const settings = loadSettings({ MILLRACE_DASHBOARD_PASSWORD: 'secret' });
    const served = {
      url: 'http://x',
      models: [TEXT],
      workerUrls: WORKERS,
      settings,
      passwordFile: undefined,
    };
    expect(summary(served).join('\n')).not.to.contain('secret');
  });

  it('offers a line to paste for either task', () => {
    expect(curlLine('http://x', TEXT, false)).to.equal(
      `curl -s http://x/v1/models/sentences/predict -H 'content-type: application/json' -d '{"inputs":"That is a happy person"}'`,
    );
    expect(curlLine('http://x', PLAIN, true)).to.equal(
      `curl -s http://x/v2/models/plain/infer -H 'content-type: application/json' -H "authorization: Bearer $MILLRACE_KEY" ` +
        `-d '{"inputs":[{"name":"a","datatype":"INT64","shape":[1,2],"data":[1,2]}]}'`,
    );
  });
});
