// `npm run bench -- SCENARIO`: what is needed on a fresh clone, then the bench.
import { end, setUp } from '../scripts/lib/setup.mjs';

if (!(await setUp())) end('Compiling failed: see above.');
// What main.ts does for a server, for the raw loops.
process.env.ORT_DISABLE_TELEMETRY = '1';
await import('./dist/main.js');
