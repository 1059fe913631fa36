/**
 * `npm run fuzz -- [--requests 100000] [--seed 1] [--only INDEX]`: mutated requests to every door of real
 * processes. Ends with one line of JSON, and exit code 0 only if nothing was wrong.
 */
import { parseArgs } from 'node:util';
import { fuzz } from './fuzz.js';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const whole = (name: string, text: string, least: number): number => {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  console.error(`--${name} must be a whole number from ${least} up, not ${text}.`);
  process.exit(2);
};
const requests = whole('requests', values.requests, 1);
const seed = whole('seed', values.seed, 0);
const only = values.only === undefined ? {} : { only: whole('only', values.only, 0) };

console.log(`Sending ${values.only === undefined ? requests : 1} mutated requests, seed ${seed}...`);
const report = await fuzz({ requests, seed, ...only, say: console.log });
for (const fault of report.faults) console.log(`FAULT: ${fault}`);
console.log(JSON.stringify({ verdict: report.faults.length === 0 ? 'pass' : 'fail', seed, ...report }));
process.exit(report.faults.length === 0 ? 0 : 1);
