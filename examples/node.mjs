// Millrace from Node.js by its own client: node examples/node.mjs
import { MillraceApiError, MillraceClient, tensor } from '@millrace/client';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY, MILLRACE_MODEL } = process.env;
const model = MILLRACE_MODEL ?? 'all-minilm-l6-v2';
const client = new MillraceClient({ baseUrl: MILLRACE_URL, apiKey: MILLRACE_API_KEY, timeoutMs: 15_000 });

// Embeddings: one Float32Array a text, as the model made it.
const question = 'stop billing me';
const lines = ['I was charged twice this month', 'Do you ship to Norway?', 'The battery drains overnight'];
const [asked, ...embedded] = await client.embed(model, [question, ...lines]);
const ranked = lines
  .map((line, i) => ({ line, score: cosine(asked, embedded[i]) }))
  .sort((a, b) => b.score - a.score);
console.log(`Nearest to "${question}":`);
for (const { line, score } of ranked) console.log(`  ${score.toFixed(3)}  ${line}`);

// The native door tells what each stage took.
const { outputs, timings } = await client.predict(model, 'That is a happy person');
console.log(`${outputs[0].length} numbers in ${timings.total} ms, ${timings.infer} of them in the model`);

// Tensors in binary, every digit kept.
const answer = await client.infer('identity', { int64: tensor('INT64', [2n ** 53n + 1n, -1n], [1, 2]) });
console.log(`int64_out is ${answer.output('int64_out', 'INT64').data.join(', ')}`);

// A call that nobody waits for is taken back by the server.
const abort = new AbortController();
const call = client.embed(model, lines, { signal: abort.signal });
abort.abort();
console.log(`Given up: ${await call.catch((error) => error.name)}`);

// Errors say what is wrong, and where.
try {
  await client.predict(model, ['fine', 7]);
} catch (error) {
  if (!(error instanceof MillraceApiError)) throw error;
  console.log(`Refused: ${error.status} ${error.code}, ${error.field}, request ${error.requestId}`);
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
