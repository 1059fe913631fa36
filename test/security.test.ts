import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SETTINGS } from '@millrace/shared';
import { expect } from 'chai';
import { makeApiKey } from '#gateway/admission/api-keys.js';
import { testRedisUrl } from '#gateway/test-support/redis.js';
import { faultyInput, faultyModels, OUT_OF_RANGE } from '#worker/test-support/faulty-model.js';
import type { TestModels } from '#worker/test-support/models.js';
import { listeners } from './support/listeners.js';
import { descendants, type MillraceProcess, MillraceRunner, untilGone } from './support/millrace-process.js';

const MARKER = 'Rumpelstilzchen-heiss-ich';
const PASSWORD = 'dashboard-Passwort-7351';

/** A text, and what base64 makes of it wherever it stands in something longer. */
function formsOf(text: string): string[] {
  const inBase64 = [0, 1, 2].map((offset) => {
    const encoded = Buffer.from(' '.repeat(offset) + text).toString('base64');
    // Without the characters that its neighbours have a part in.
    return encoded.replace(/=+$/, '').slice(Math.ceil((offset * 8) / 6), -2);
  });
  return [text, encodeURIComponent(text), ...inBase64];
}

describe('what a server tells', function () {
  this.timeout(60_000);
  const runner = new MillraceRunner();
  const alice = makeApiKey('alice');
  const ops = makeApiKey('ops', ['admin']);
  const unknown = makeApiKey('mallory');
  const answers: string[] = [];
  let models: TestModels;
  let millrace: MillraceProcess;
  let url = '';
  let redisPassword = '';
  let listening: string[] = [];

  const ask = async (path: string, init: RequestInit = {}): Promise<number> => {
    const headers = { 'x-api-key': alice.key, ...(init.headers as Record<string, string>) };
    const response = await fetch(url + path, { redirect: 'manual', ...init, headers });
    answers.push(await response.text());
    return response.status;
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<number> =>
    ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  before(async () => {
    models = await faultyModels({ beside: ['identity'] });
    const dataDir = await runner.folder();
    millrace = runner.run({
      args: ['up', '--data-dir', dataDir, '--models', `identity,${models.name}`, '--port', '0'],
      env: {
        [SETTINGS.modelsDir.env]: models.modelsDir,
        [SETTINGS.cacheDir.env]: join(dataDir, 'cache'),
        [SETTINGS.logLevel.env]: 'trace',
        [SETTINGS.apiKeys.env]: `${alice.entry},${ops.entry}`,
        [SETTINGS.dashboardPassword.env]: PASSWORD,
      },
    });
    [, url = ''] = await millrace.says(/Millrace serves (http:\S+)/);
    redisPassword = (await readFile(join(dataDir, 'redis', 'password'), 'utf8')).trim();
    await millrace.says(/Stop +Ctrl-C/);

    const predict = '/v1/models/identity/predict';
    const infer = '/v2/models/identity/infer';
    const tensor = (data: unknown): object => ({
      inputs: [{ name: 'bytes', datatype: 'BYTES', shape: [1, 1], data }],
    });
    const statuses = {
      answered: await post(predict, { inputs: { bytes: [MARKER] } }),
      named: await post(predict, { inputs: { bytes: [MARKER] } }, { 'idempotency-key': MARKER }),
      large: await post(infer, tensor([MARKER.repeat(1000)])),
      broken: await post(predict, `{"inputs": "${MARKER}`),
      wrong: await post(predict, { inputs: { bytes: [[MARKER]] } }),
      field: await post(predict, { inputs: { [MARKER]: [1] } }),
      mistyped: await post(infer, tensor([[MARKER, 3]])),
      noModel: await post(`/v1/models/${MARKER}/predict`, { inputs: MARKER }),
      noPath: await ask(`/${MARKER}?x=${MARKER}`),
      badPath: await ask(`/v1/models/${MARKER}%zz`),
      unknownKey: await post(predict, {}, { 'x-api-key': unknown.key }),
      noScope: await post(predict, {}, { 'x-api-key': ops.key }),
      failed: await post(`/v1/models/${models.name}/predict`, {
        inputs: faultyInput({ value: 1, index: OUT_OF_RANGE }),
      }),
      wrongLogin: await ask('/dashboard/login', {
        method: 'POST',
        body: new URLSearchParams({ user: 'admin', password: MARKER }),
      }),
      login: await ask('/dashboard/login', {
        method: 'POST',
        body: new URLSearchParams({ user: 'admin', password: PASSWORD }),
      }),
      keyLogin: await ask('/dashboard/login', {
        method: 'POST',
        body: new URLSearchParams({ user: 'ops', password: ops.key }),
      }),
    };
    expect(statuses).to.deep.equal({
      answered: 200,
      named: 200,
      large: 200,
      broken: 400,
      wrong: 400,
      field: 400,
      mistyped: 400,
      noModel: 404,
      noPath: 404,
      badPath: 400,
      unknownKey: 401,
      noScope: 403,
      failed: 500,
      wrongLogin: 401,
      login: 303,
      keyLogin: 303,
    });
    const all = descendants(millrace.pid);
    listening = await listeners([millrace.pid, ...all]);
    millrace.signal('SIGTERM');
    await millrace.ended;
    await untilGone(all);
  });
  after(async () => {
    await runner.clean();
    await models?.remove();
  });

  it('nobody who asks from another machine: every port is on loopback', function () {
    if (process.platform !== 'linux') this.skip();
    // The gateway's two, HTTP and gRPC, and the worker's; Redis has a unix socket.
    expect(listening).to.have.length(3);
    for (const address of listening) expect(address).to.match(/^0100007F:/);
  });

  it('its log, at level trace, is how requests ended and whose they were', () => {
    const log = millrace.output();
    expect(log).to.include('"code":"model_not_found"').and.include('"tenant":"alice"');
    expect(log).to.include('"code":"inference_failed"');
  });

  it('its log is no secret', () => {
    const secrets = [alice.key, ops.key, unknown.key, PASSWORD, redisPassword];
    expect(redisPassword).to.have.length.of.at.least(16);
    for (const secret of secrets.flatMap(formsOf)) expect(millrace.output()).not.to.include(secret);
    for (const entry of [alice.entry, ops.entry])
      expect(millrace.output()).not.to.include(entry.split('=')[1]);
  });

  it('its log is no text that a client sent', () => {
    for (const form of formsOf(MARKER)) expect(millrace.output()).not.to.include(form);
  });

  it('a client is no stack, no path of its machine and no secret', () => {
    for (const answer of answers) {
      expect(answer).not.to.match(/\n\s+at |node_modules|\.js:\d+/);
      expect(answer).not.to.include(process.cwd());
      for (const secret of [PASSWORD, redisPassword, unknown.key]) expect(answer).not.to.include(secret);
    }
  });
});

describe('a model name on the command line', function () {
  this.timeout(60_000);
  const runner = new MillraceRunner();
  let models: TestModels;
  before(async () => {
    models = await faultyModels({ beside: ['identity'] });
  });
  after(async () => {
    await runner.clean();
    await models?.remove();
  });

  it('names nothing outside the models folder, though it lies there', async () => {
    const dataDir = await runner.folder();
    // Inside is the one model; the other lies beside it.
    const inside = join(models.modelsDir, models.name);
    const outside = ['../identity', join(models.modelsDir, 'identity')];
    const env = { [SETTINGS.modelsDir.env]: inside, [SETTINGS.dataDir.env]: dataDir };
    const redis = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    const commands = outside.flatMap((name) => [
      runner.run({ args: ['up', '--models', name], env }),
      runner.run({ args: ['models', 'prepare', name], env }),
      runner.run({ args: ['tune', name], env: redis }),
    ]);
    for (const command of commands) {
      expect(await command.ended).to.equal(1);
      expect(command.output()).to.match(/^There is no model "(\.\.|\/).*identity" in /);
    }
  });

  it('names nothing outside to a worker either', async () => {
    const worker = runner.run({
      args: ['worker', '--models', '../identity'],
      env: { REDIS_URL: testRedisUrl(), [SETTINGS.modelsDir.env]: join(models.modelsDir, models.name) },
    });
    expect(await worker.ended).to.equal(1);
    expect(worker.output()).to.match(/There is no model "\.\.\/identity" in /);
  });
});
