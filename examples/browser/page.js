// Embeds as you type, and ranks a list by similarity: all of it between this page and a gateway.
import { MillraceClient, MillraceConnectionError } from '@millrace/client';

/** A call goes out when nothing was typed for so long. */
const PAUSE_MS = 120;
const LINES = [
  'How do I reset my password?',
  'I was charged twice this month',
  'My parcel arrived damaged',
  'How do I add a colleague to my team?',
  'The battery drains overnight',
  'Do you ship to Norway?',
  'The app crashes when I open the camera',
  'Where can I download last year’s receipts?',
  'I would like to cancel my subscription',
  'The sound is out of step with the picture',
  'Is my data encrypted?',
  'Can I change the address of an order?',
];

const element = (id) => document.getElementById(id);
const [query, latency, list, status] = ['query', 'latency', 'list', 'status'].map(element);
const asked = new URLSearchParams(location.search);

let client;
let model;
/** The lines with their row and their embedding. */
let lines = [];
/** What is said while all is well. */
let summary = '';
/** Give up what is under way. */
let connecting = new AbortController();
let ranking = new AbortController();
let pause;

element('lines').value = LINES.join('\n');
element('server').value = asked.get('server') ?? `http://${location.hostname}:8080`;
element('settings').addEventListener('submit', async (event) => {
  event.preventDefault();
  await connect();
});
element('tries').addEventListener('click', async ({ target }) => {
  if (!(target instanceof HTMLButtonElement)) return;
  query.value = target.textContent;
  query.focus();
  await rank();
});
query.addEventListener('input', () => {
  clearTimeout(pause);
  pause = setTimeout(rank, PAUSE_MS);
});
await connect();

/** Finds the model and embeds the list once. */
async function connect() {
  ranking.abort();
  connecting.abort();
  connecting = new AbortController();
  const { signal } = connecting;
  say('Connecting…');
  show(
    element('lines')
      .value.split('\n')
      .map((text) => text.trim())
      .filter(Boolean),
  );
  try {
    client = new MillraceClient({
      baseUrl: element('server').value,
      apiKey: element('key').value || undefined,
      timeoutMs: 15_000,
    });
    const models = await client.models({ signal });
    model = asked.get('model') ?? models.find(({ task }) => task === 'text-embedding')?.id;
    if (model === undefined) throw new Error('This gateway serves no model that embeds text.');
    const embeddings = await client.embed(
      model,
      lines.map(({ text }) => text),
      { signal },
    );
    for (const [i, line] of lines.entries()) line.embedding = embeddings[i];
    summary = `${lines.length} lines embedded by ${model}, ${embeddings[0]?.length ?? 0} numbers each.`;
    say(summary);
    document.body.dataset.ready = 'true';
    if (query.value) await rank();
  } catch (error) {
    fail(error, signal);
  }
}

/** Embeds what is typed and sorts the list by it. A call still under way is given up: its answer is of no use. */
async function rank() {
  clearTimeout(pause);
  ranking.abort();
  ranking = new AbortController();
  const { signal } = ranking;
  const text = query.value.trim();
  if (!text || !lines[0]?.embedding) {
    latency.textContent = '';
    latency.classList.remove('waiting');
    list.classList.add('unranked');
    return;
  }
  latency.classList.add('waiting');
  const started = performance.now();
  try {
    // Not tried again: by then something else is typed.
    const embedding = await client.embed(model, text, { signal, retries: 0 });
    latency.textContent = `${Math.round(performance.now() - started)} ms`;
    latency.classList.remove('waiting');
    for (const line of lines) line.score = cosine(embedding, line.embedding);
    sort();
    say(summary);
  } catch (error) {
    fail(error, signal);
  }
}

function show(texts) {
  delete document.body.dataset.ready;
  lines = texts.map((text) => {
    const row = document.createElement('li');
    row.innerHTML = '<span class="line"></span><span class="meter"><i></i></span><span class="score"></span>';
    row.firstChild.textContent = text;
    return { text, row };
  });
  list.replaceChildren(...lines.map(({ row }) => row));
  list.classList.add('unranked');
}

/** Puts the rows in order; each glides from where it was. */
function sort() {
  const before = new Map(lines.map(({ row }) => [row, row.offsetTop]));
  const ranked = lines.toSorted((a, b) => b.score - a.score);
  for (const [rank, { row, score }] of ranked.entries()) {
    row.classList.toggle('best', rank === 0);
    row.style.setProperty('--score', Math.max(0, score).toFixed(3));
    // + 0: never "-0.00".
    row.lastChild.textContent = (Math.round(score * 100) / 100 + 0).toFixed(2);
  }
  list.replaceChildren(...ranked.map(({ row }) => row));
  list.classList.remove('unranked');
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  for (const [row, top] of before) {
    const from = { transform: `translateY(${top - row.offsetTop}px)` };
    row.animate([from, { transform: 'none' }], { duration: 250, easing: 'ease-out' });
  }
}

function cosine(a, b) {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    aa += a[i] ** 2;
    bb += b[i] ** 2;
  }
  return dot / Math.sqrt(aa * bb);
}

function say(text) {
  status.textContent = text;
  status.classList.remove('fault');
}

function fail(error, signal) {
  // Given up for a newer call.
  if (signal.aborted) return;
  latency.textContent = '';
  latency.classList.remove('waiting');
  const hint = ` Does it run, and allow this page: MILLRACE_CORS_ORIGINS=${location.origin}?`;
  status.textContent = error.message + (error instanceof MillraceConnectionError ? hint : '');
  status.classList.add('fault');
}
