import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { ROOT } from './setup.mjs';

const TEST = '.test.ts';

/** Splits what came after `npm test --` into compiled test files and options for mocha. */
export function parseTestArguments(args) {
  const files = [];
  const options = [];
  for (const arg of args) {
    const isFile = arg.endsWith(TEST) && existsSync(resolve(ROOT, arg));
    if (isFile) files.push(compiled(relative(ROOT, resolve(ROOT, arg))));
    else options.push(arg);
  }
  return { files, options };
}

/** Every compiled test file, found by its source: `dist` may still hold tests that are gone. */
export function allTests() {
  const roots = ['packages', 'apps'].flatMap((group) =>
    readdirSync(join(ROOT, group)).map((name) => join(group, name, 'src')),
  );
  return [...roots, 'test', 'bench'].flatMap(testsUnder).map(compiled).sort();
}

function testsUnder(folder) {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return entry.name === 'dist' || entry.name.startsWith('.') ? [] : testsUnder(path);
    return entry.name.endsWith(TEST) ? [path] : [];
  });
}

/** `apps/x/src/a/b.test.ts` -> `apps/x/dist/a/b.test.js`; `test/a.test.ts` -> `test/dist/a.test.js`. */
function compiled(source) {
  const parts = source.split(/[\\/]/);
  if (parts[0] === 'test' || parts[0] === 'bench') parts.splice(1, 0, 'dist');
  else parts[2] = 'dist';
  return parts.join('/').replace(/\.ts$/, '.js');
}
