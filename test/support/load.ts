import { predict } from './client.js';
import { distance } from './minilm.js';

/** Answers of one text in any batch agree to this; different sentences differ by far more. */
export const SAME_ANSWER = 1e-3;

/** Sentences and the answer that each must get: asked for one by one, before any load. */
export interface References {
  sentences: readonly string[];
  answers: readonly number[][];
}

export async function askReferences(
  url: string,
  model: string,
  sentences: readonly string[],
): Promise<References> {
  const answers: number[][] = [];
  for (const sentence of sentences) {
    const { outputs } = await predict(url, model, sentence);
    answers.push(outputs[0] ?? []);
  }
  return { sentences, answers };
}

/** Whether an answer is that of sentence `index`, and of no other. */
export function isRight(references: References, index: number, answer: readonly number[]): boolean {
  const own = references.answers[index] ?? [];
  if (answer.length !== own.length || distance(answer, own) > SAME_ANSWER) return false;
  return references.sentences[nearest(references, answer)] === references.sentences[index];
}

/** Index of the reference that is nearest to an answer. */
export function nearest(references: References, answer: readonly number[]): number {
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [i, reference] of references.answers.entries()) {
    const d = squaredDistance(answer, reference);
    if (d < least) {
      least = d;
      best = i;
    }
  }
  return best;
}

function squaredDistance(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (const [i, x] of a.entries()) sum += (x - (b[i] ?? 0)) ** 2;
  return sum;
}

export interface LoadResult {
  requests: number;
  right: number;
  wrong: number;
  /** Status codes and client errors of requests that got no value, with how many there were. */
  refused: Map<string, number>;
  /** Milliseconds from sent to answered, of every request. */
  latencies: number[];
}

export interface Load {
  /** Stops sending and resolves when every request has its outcome. */
  stop(): Promise<LoadResult>;
  readonly sent: number;
}

/** `clients` closed-loop clients over the gateways at `urls`, one sentence a request. */
export function startLoad(
  urls: readonly string[],
  model: string,
  references: References,
  options: { clients: number; clientTimeoutMs: number },
): Load {
  const result: LoadResult = { requests: 0, right: 0, wrong: 0, refused: new Map(), latencies: [] };
  let stopped = false;
  let next = 0;
  const client = async (id: number): Promise<void> => {
    const url = urls[id % urls.length] ?? '';
    while (!stopped) {
      const index = next++ % references.sentences.length;
      const began = performance.now();
      result.requests++;
      try {
        const response = await fetch(`${url}/v1/models/${model}/predict`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ inputs: references.sentences[index] }),
          signal: AbortSignal.timeout(options.clientTimeoutMs),
        });
        if (response.status === 200) {
          const { outputs } = (await response.json()) as { outputs: number[][] };
          if (isRight(references, index, outputs[0] ?? [])) result.right++;
          else result.wrong++;
        } else {
          const { code } = (await response.json()) as { code?: string };
          count(result.refused, `${response.status} ${code ?? ''}`);
        }
      } catch (error) {
        count(result.refused, (error as Error).name);
      }
      result.latencies.push(performance.now() - began);
    }
  };
  const clients = Array.from({ length: options.clients }, (_, id) => client(id));
  return {
    get sent() {
      return result.requests;
    },
    async stop() {
      stopped = true;
      await Promise.all(clients);
      result.latencies.sort((a, b) => a - b);
      return result;
    },
  };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
