// `npm run chaos -- --minutes 10 --seed 1`: what is needed on a fresh clone, then the run.
import { end, setUp } from '../../scripts/lib/setup.mjs';

if (!(await setUp())) end('Compiling failed: see above.');
await import('../dist/chaos/main.js');
