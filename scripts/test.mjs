// `npm test`: everything that is needed on a fresh clone, then the linters and every test, against a private
// Redis and a data folder of their own. `npm test -- --grep X` and `npm test -- PATH` (a test, or a folder of them) run a part.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { end, ROOT, run, setUp } from './lib/setup.mjs';
import { allTests, parseTestArguments } from './lib/tests.mjs';

const TEST_TIMEOUT_MS = 30_000;
const bin = (name, file) => join(ROOT, 'node_modules', name, file);

// Tests of what was compiled before would tell of other code than this, and push the fault out of sight.
if (!(await setUp())) end('FAILED: not everything compiles: see above.\n0 passed, 1 failed');
const { files, options } = testsAskedFor();
const isPart = files.length > 0 || options.length > 0;
const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'));
const countsFile = join(folder, 'counts.json');
// A person's own settings must change no test, and no test may touch their Redis or data.
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(MILLRACE_|REDIS_URL$|PORT$)/.test(name)),
);
// Fetched models are the same for everybody: no need to fetch them again.
if (process.env.MILLRACE_CACHE_DIR) env.MILLRACE_CACHE_DIR = process.env.MILLRACE_CACHE_DIR;

// What main.ts does for a server, for the tests that load onnxruntime themselves.
env.ORT_DISABLE_TELEMETRY = '1';

const failures = [];
if (!isPart) await lint();
const { loadSettings } = await import('../packages/shared/dist/index.js');
const { startPrivateRedis } = await import('../apps/cli/dist/index.js');
const redis = await startPrivateRedis({
  dataDir: join(folder, 'redis'),
  enableDebug: true,
  say: console.log,
}).catch((error) => {
  console.error(`${error.message} ${error.nextStep ?? ''}`);
  process.exit(1);
});
process.once('SIGINT', () => void finish(130));
process.once('SIGTERM', () => void finish(143));
await prepareModels();
await mocha();
await finish(undefined);

function testsAskedFor() {
  try {
    return parseTestArguments(process.argv.slice(2));
  } catch (error) {
    return end(`FAILED: ${error.message}.\n0 passed, 1 failed`);
  }
}

async function lint() {
  console.log('Linting...');
  const biome = await run(process.execPath, [bin('@biomejs', 'biome/bin/biome'), 'check', '.']);
  if (biome !== 0) failures.push('biome found faults');
  const knip = await run(process.execPath, [bin('knip', 'bin/knip.js'), '--no-config-hints']);
  if (knip !== 0) failures.push('knip found something unused');
}

async function prepareModels() {
  console.log('Preparing models...');
  const code = await run(process.execPath, ['apps/cli/dist/main.js', 'models', 'prepare'], { env });
  if (code !== 0) failures.push('a model could not be prepared');
}

async function mocha() {
  const code = await run(
    process.execPath,
    [
      '--enable-source-maps',
      bin('mocha', 'bin/mocha.js'),
      '--reporter',
      join(ROOT, 'scripts', 'lib', 'reporter.cjs'),
      process.stdout.isTTY ? '--color' : '--no-color',
      '--timeout',
      String(TEST_TIMEOUT_MS),
      ...options,
      ...(files.length > 0 ? files : allTests()),
    ],
    {
      env: {
        ...env,
        MILLRACE_DATA_DIR: join(folder, 'data'),
        MILLRACE_TEST_COUNTS: countsFile,
        // Where the prepared models lie, as prepareModel() finds them: its `cacheDir`.
        MILLRACE_TEST_MODELS: loadSettings(env).cacheDir,
        MILLRACE_TEST_REDIS_URL: redis.url,
      },
    },
  );
  const counts = readCounts();
  if (code !== 0 && counts.failed === 0) {
    const where = counts.running ? ` in "${counts.running}"` : '';
    failures.push(`the test process ended with exit code ${code}${where}`);
  }
}

function readCounts() {
  try {
    return JSON.parse(readFileSync(countsFile, 'utf8'));
  } catch {
    // It ended before it ran a test: a file that could not be loaded, for one.
    return { passed: 0, failed: 0, skipped: 0, running: '' };
  }
}

async function finish(interrupted) {
  const { passed, failed, skipped } = readCounts();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
  for (const failure of failures) console.error(`FAILED: ${failure}`);
  const all = failed + failures.length;
  console.log(`${passed} passed, ${all} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exit(interrupted ?? (all > 0 || passed === 0 ? 1 : 0));
}
