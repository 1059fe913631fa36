import { setTimeout as sleep } from 'node:timers/promises';
import { post, predict } from '../support/client.js';
import { askReferences, isRight, type References } from '../support/load.js';
import { MINILM, sampleSentences } from '../support/minilm.js';

const SENTENCES = 20;
/** The mutated requests may fill a queue for a while: a refusal is no wrong answer, one that lasts is, in ms. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 1000;

/** Requests whose right answers are known beforehand: what the server must still say among the others. */
export class KnownAnswers {
  #asked = 0;

  private constructor(
    private readonly url: string,
    private readonly references: References,
  ) {}

  static async prepare(url: string): Promise<KnownAnswers> {
    const sentences = (await sampleSentences()).slice(0, SENTENCES);
    return new KnownAnswers(url, await askReferences(url, MINILM, sentences));
  }

  get asked(): number {
    return this.#asked;
  }

  /** Asks both models through both doors; what is wrong with the answers. */
  async ask(): Promise<string[]> {
    const n = ++this.#asked;
    const faults: string[] = [];
    const attempt = async (what: string, ask: () => Promise<boolean>): Promise<void> => {
      const right = await patiently(ask);
      if (right !== true) faults.push(`known answer ${n}, ${what}: ${right || 'wrong'}`);
    };
    await Promise.all([
      attempt('identity', async () => {
        const value = { fp32: [n, 0.5, -n], int64: [n], bytes: [`unique ${n}`] };
        const { outputs } = await predict(this.url, 'identity', [value, value]);
        const right = { fp32_out: value.fp32, int64_out: value.int64, bytes_out: value.bytes };
        return JSON.stringify(outputs) === JSON.stringify([right, right]);
      }),
      attempt('identity, open', async () => {
        const inputs = [{ name: 'int64', datatype: 'INT64', shape: [1, 2], data: [n, -n] }];
        const response = await post(`${this.url}/v2/models/identity/infer`, { id: `${n}`, inputs });
        if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
        const { id, outputs } = (await response.json()) as { id: string; outputs: { data: unknown }[] };
        return id === `${n}` && JSON.stringify(outputs[0]?.data) === `[${n},${-n}]`;
      }),
      attempt(MINILM, async () => {
        const index = n % this.references.sentences.length;
        const { outputs } = await predict(this.url, MINILM, this.references.sentences[index]);
        return isRight(this.references, index, outputs[0] ?? []);
      }),
    ]);
    return faults;
  }
}

/** What `ask` finds, or why it could not; again while it is refused for load. */
async function patiently(ask: () => Promise<boolean>): Promise<boolean | string> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await ask().catch((error: Error) => error.message);
    const refused = typeof found === 'string' && found.startsWith('429 ');
    if (!refused || performance.now() > deadline) return found;
    await sleep(RETRY_MS);
  }
}
