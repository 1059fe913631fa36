/** A model's process without a server around it, asked over the channel. */
import type { FromRaw, ToRaw } from './raw/messages.js';
import { RawModel } from './raw/raw-model.js';
import { median } from './run/statistics.js';

// Not exit(): a session thread in the middle of a run would turn that into an abort.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);

let model: RawModel | undefined;

async function answer(message: ToRaw): Promise<FromRaw> {
  if (message.type === 'load') {
    model = await RawModel.load(message);
    return { type: 'loaded', threads: model.threads };
  }
  if (!model) throw new Error('no model is loaded');
  const { sentences } = message;
  if (message.type === 'embed') return { type: 'embedded', vectors: await model.embed(sentences) };
  const { warmUpSeconds, seconds } = message;
  if (message.type === 'loop') {
    return { type: 'looped', ...(await model.loop(sentences, warmUpSeconds, seconds)) };
  }
  const times = await model.lone(sentences, warmUpSeconds, seconds);
  const p99Ms = times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
  return { type: 'timed', p50Ms: median(times), p99Ms };
}

process.on('message', (message: ToRaw) => {
  answer(message).then(
    (told) => process.send?.(told),
    (error: Error) => process.send?.({ type: 'failed', message: error.message } satisfies FromRaw),
  );
});
