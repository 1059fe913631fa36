import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { ROOT } from './setup.mjs';

const TEST = '.test.ts';

/** The options of mocha that a text to look for follows: it may be called as a folder is. */
const TEXT_FOLLOWS = new Set(['-g', '--grep', '-f', '--fgrep']);

/**
 * Splits what came after `npm test --` into compiled test files and options for mocha. A folder stands for the tests
 * in it.
 *
 * @throws Error for a test or a folder of tests that is not there: everything would be run instead.
 */
export function parseTestArguments(args) {
  const files = [];
  const options = [];
  for (const [i, arg] of args.entries()) {
    const path = relative(ROOT, resolve(ROOT, arg));
    const isText = arg.startsWith('-') || TEXT_FOLLOWS.has(args[i - 1]);
    if (!isText && arg.endsWith(TEST)) {
      if (!existsSync(join(ROOT, path))) throw new Error(`there is no test ${arg}`);
      files.push(compiled(path));
    } else if (!isText && statSync(join(ROOT, path), { throwIfNoEntry: false })?.isDirectory()) {
      const found = testsUnder(path).map(compiled).sort();
      if (found.length === 0) throw new Error(`there are no tests in ${arg}`);
      files.push(...found);
    } else options.push(arg);
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
