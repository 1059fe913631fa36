// `npm start`: everything that is needed on a fresh clone, then `millrace up`. `npm start -- worker` and the
// like reach the other commands.
import { end, setUp } from './lib/setup.mjs';

// The client is for the examples.
if (!(await setUp('apps/cli', 'packages/client'))) end('Compiling failed: see above.');
const [first] = process.argv.slice(2);
if (first === undefined || first.startsWith('-')) process.argv.splice(2, 0, 'up');
// In this very process: one parent less whose death the children would have to notice.
await import('../apps/cli/dist/main.js');
