// `npm run fuzz`: what is needed on a fresh clone, then the fuzzer.
import { end, setUp } from '../../scripts/lib/setup.mjs';

if (!(await setUp())) end('Compiling failed: see above.');
await import('../dist/fuzz/main.js');
