// Millrace by the official openai package, which only needs another base URL: node examples/node-openai.mjs
import OpenAI from 'openai';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY, MILLRACE_MODEL } = process.env;
const model = MILLRACE_MODEL ?? 'all-minilm-l6-v2';
// The package insists on a key; without keys in the gateway, any will do.
const openai = new OpenAI({ baseURL: `${MILLRACE_URL}/v1`, apiKey: MILLRACE_API_KEY ?? 'none' });

const sentences = ['That is a happy person', 'That is a very happy person', 'Today is a sunny day'];
const { data, usage } = await openai.embeddings.create({ model, input: sentences });
const [first, ...others] = data.map(({ embedding }) => embedding);
for (const [i, other] of others.entries()) {
  console.log(`${cosine(first, other).toFixed(3)}  ${sentences[0]} / ${sentences[i + 1]}`);
}
console.log(`${usage.prompt_tokens} tokens`);

for await (const { id } of openai.models.list()) console.log(`serves ${id}`);

try {
  await openai.embeddings.create({ model, input: [] });
} catch (error) {
  if (!(error instanceof OpenAI.BadRequestError)) throw error;
  console.log(`Refused: ${error.status}, ${error.param}`);
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
