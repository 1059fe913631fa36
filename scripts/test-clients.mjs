// `npm run test:clients`: the Python clients that people have, against a real server. It makes its own virtualenv
// (.cache/clients), starts a private Redis, a gateway and a worker, and runs pytest over test/clients.
// `npm run test:clients -- -k openai` runs a part: options are pytest's.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeVirtualenv } from './lib/python.mjs';
import { end, ROOT, run, setUp } from './lib/setup.mjs';

const MODEL = 'all-minilm-l6-v2';
const TESTS = join(ROOT, 'test', 'clients');

if (!(await setUp())) end('Compiling failed: see above.');
const python = await makeVirtualenv(join(ROOT, '.cache', 'clients'), join(TESTS, 'requirements.txt'));
const { Cluster } = await import('../test/dist/support/cluster.js');
const { DATATYPES_MODEL, datatypesModels } = await import('../test/dist/support/datatypes-model.js');
// A person's own settings must change no test.
for (const name of Object.keys(process.env)) {
  if (/^(MILLRACE_(?!CACHE_DIR)|REDIS_URL$|PORT$)/.test(name)) delete process.env[name];
}
process.env.ORT_DISABLE_TELEMETRY = '1';
const folder = mkdtempSync(join(tmpdir(), 'millrace-clients-'));
const countsFile = join(folder, 'counts.json');
let models;
let cluster;
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  process.once(signal, () => void finish(code));
}

try {
  await finish(await runTests());
} catch (error) {
  console.error(error.message);
  await finish(1);
}

async function runTests() {
  console.log('Preparing models...');
  const main = join(ROOT, 'apps', 'cli', 'dist', 'main.js');
  if ((await run(process.execPath, [main, 'models', 'prepare', MODEL])) !== 0)
    throw new Error('A model could not be prepared.');
  console.log('Starting a server...');
  models = await datatypesModels([MODEL, 'identity']);
  cluster = await Cluster.start({
    models: [MODEL, DATATYPES_MODEL, 'identity'],
    env: { MILLRACE_MODELS_DIR: models.modelsDir },
  });
  const code = await run(
    python,
    ['-m', 'pytest', '-v', '-p', 'no:cacheprovider', ...process.argv.slice(2), TESTS],
    {
      env: {
        ...process.env,
        ...withoutReports(),
        MILLRACE_URL: cluster.url,
        MILLRACE_GRPC_URL: cluster.gateways[0].grpc,
        MILLRACE_MODEL: MODEL,
        MILLRACE_TEST_COUNTS: countsFile,
        // Not beside the tests.
        PYTHONPYCACHEPREFIX: join(ROOT, '.cache', 'clients', 'pycache'),
      },
    },
  );
  return code === 0 ? 0 : 1;
}

/** The server is on this machine: no proxy on the way, and nothing is fetched from or told to anybody. */
function withoutReports() {
  return {
    HYPOTHESIS_STORAGE_DIRECTORY: join(folder, 'hypothesis'),
    NO_PROXY: '127.0.0.1',
    HF_HUB_DISABLE_TELEMETRY: '1',
    LANGSMITH_TRACING: 'false',
  };
}

async function finish(code) {
  await cluster?.stop();
  await models?.remove();
  const { passed, failed, skipped } = readCounts();
  rmSync(folder, { recursive: true, force: true });
  const all = failed + (code !== 0 && failed === 0 ? 1 : 0);
  console.log(`${passed} passed, ${all} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exit(code || (passed === 0 ? 1 : 0));
}

function readCounts() {
  try {
    return JSON.parse(readFileSync(countsFile, 'utf8'));
  } catch {
    // It ended before it ran a test.
    return { passed: 0, failed: 0, skipped: 0 };
  }
}
