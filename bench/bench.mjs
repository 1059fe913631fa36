// `npm run bench -- SCENARIO`: what is needed on a fresh clone, then the bench.
import { end, setUp } from '../scripts/lib/setup.mjs';

if (!(await setUp())) end('Compiling failed: see above.');
await import('./dist/main.js');
