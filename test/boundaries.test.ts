import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BIOME = join(ROOT, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
const PACKAGES = [
  'packages/shared',
  'packages/onnx',
  'packages/client',
  'apps/gateway',
  'apps/worker',
  'apps/cli',
];

const CYCLE = 'lint/suspicious/noImportCycles';
const OWNER = 'lint/style/noRestrictedImports';
const UNDECLARED = 'lint/correctness/noUndeclaredDependencies';

/** A file, what it imports, and the rule that must find fault with it. */
const BROKEN: [file: string, imports: string, rule: string][] = [
  ['packages/shared/src/up.ts', '@millrace/gateway', UNDECLARED],
  ['packages/shared/src/aside.ts', '@millrace/onnx', UNDECLARED],
  ['packages/onnx/src/aside.ts', '@millrace/shared', UNDECLARED],
  ['packages/client/src/aside.ts', '@millrace/shared', UNDECLARED],
  ['packages/client/src/platform.ts', 'node:buffer', OWNER],
  ['apps/gateway/src/aside.ts', '@millrace/worker', UNDECLARED],
  ['apps/worker/src/aside.ts', '@millrace/gateway', UNDECLARED],
  ['apps/cli/src/deep.ts', '@millrace/worker/dist/session/client.js', OWNER],
  ['apps/cli/src/around.ts', '../../worker/src/index.js', OWNER],
  ['apps/gateway/src/inference/door.ts', 'express', OWNER],
  ['apps/gateway/src/gateway-door.ts', 'express', OWNER],
  ['apps/gateway/src/http/queue.ts', 'bullmq', OWNER],
  ['apps/gateway/src/protocols/board.ts', '@bull-board/express', OWNER],
  ['apps/worker/src/pipeline/queue.ts', 'bullmq', OWNER],
  ['apps/worker/src/tasks/run.ts', 'onnxruntime-node', OWNER],
  ['apps/worker/src/session/pool.ts', 'piscina', OWNER],
  ['apps/worker/src/cycle-a.ts', './cycle-b.js', CYCLE],
  ['apps/worker/src/cycle-b.ts', './cycle-a.js', CYCLE],
];

const ALLOWED: [file: string, imports: string][] = [
  ['apps/gateway/src/http/app.ts', 'express'],
  ['apps/gateway/src/protocols/native.ts', 'express'],
  ['apps/gateway/src/dashboard/board.ts', '@bull-board/express'],
  ['apps/gateway/src/inference/producer.ts', 'bullmq'],
  ['apps/worker/src/intake/consumer.ts', 'bullmq'],
  ['apps/worker/src/session/session.ts', 'onnxruntime-node'],
  ['packages/onnx/src/run.ts', 'onnxruntime-node'],
  ['apps/worker/src/tasks/pool.ts', 'piscina'],
  ['apps/cli/src/start.ts', '@millrace/worker'],
];

/** Found faults as `file rule`. */
async function lint(folder: string): Promise<Set<string>> {
  const args = [BIOME, 'lint', '--vcs-enabled=false', '--reporter=github', '--max-diagnostics=none', '.'];
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { cwd: folder }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
  const found = output.matchAll(/::error title=(?<rule>[^,]+),file=(?<file>[^,]+),/g);
  return new Set(
    [...found].map(
      ({ groups }) => `${groups?.file?.slice(groups.file.search(/(apps|packages)\//))} ${groups?.rule}`,
    ),
  );
}

describe('the import directions', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-boundaries-'));
    await cp(join(ROOT, 'biome.json'), join(folder, 'biome.json'));
    for (const name of PACKAGES) {
      await mkdir(join(folder, name), { recursive: true });
      await cp(join(ROOT, name, 'package.json'), join(folder, name, 'package.json'));
    }
    for (const [file, imports] of [...BROKEN, ...ALLOWED]) {
      const path = join(folder, file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, `import * as found from '${imports}';\n\nexport const kept = found;\n`);
    }
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it('are enforced: each way of breaking them is found, and nothing else is', async () => {
    const found = await lint(folder);
    expect([...found].sort()).to.deep.equal(BROKEN.map(([file, , rule]) => `${file} ${rule}`).sort());
  });
});
