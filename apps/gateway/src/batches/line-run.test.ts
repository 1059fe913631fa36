import { bytesTensor, gatewayMetrics, MillraceError, RedisClock } from '@millrace/shared';
import { expect } from 'chai';
import type { InferRequest, InferResult } from '../inference/request.js';
import { LineGroups } from '../lines/line-groups.js';
import { textModel } from '../test-support/models.js';
import type { AddressedLine, LineReader } from './batch-lines.js';
import type { BatchRecord } from './batch-record.js';
import type { CheckpointWriter, WrittenLine } from './checkpoint-writer.js';
import type { BatchInput } from './input.js';
import { LineRun } from './line-run.js';

const MODEL = textModel('texts');
const BATCH = { id: 'batch_1', checkpoint: { line: 0, end: 0 }, endpoint: '/v1/embeddings' };

/** A run of so many empty lines, each of them a request of its own. */
function runOf(
  lines: number,
  parts: {
    readLine: LineReader;
    infer?: (request: InferRequest) => Promise<InferResult>;
    add(line: WrittenLine): void;
  },
): LineRun {
  const { readLine, infer = () => Promise.reject(new Error('nothing is to be run')), add } = parts;
  const clock = new RedisClock();
  const batch = { ...BATCH, expiresAt: clock.now() + 60_000 };
  return new LineRun(batch as unknown as BatchRecord, {
    input: {
      async *bytes() {
        yield Buffer.alloc(lines, '\n');
      },
    } as unknown as BatchInput,
    readLine,
    groups: new LineGroups({ infer, clock, tenant: 'nobody', priority: 'bulk', mostItems: () => 1 }),
    writer: { room: async () => undefined, add } as unknown as CheckpointWriter,
    clock,
    metrics: gatewayMetrics(),
    mostItems: 256,
    groupItems: 32,
    mostLineBytes: 1000,
  });
}

/** Counts the turns that others have. */
class Turns {
  count = 0;
  #next = setImmediate(() => this.#turn());

  #turn(): void {
    this.count += 1;
    this.#next = setImmediate(() => this.#turn());
  }

  stop(): void {
    clearImmediate(this.#next);
  }
}

describe('LineRun', () => {
  let turns: Turns;
  beforeEach(() => {
    turns = new Turns();
  });
  afterEach(() => turns.stop());

  it('lets others have their turn between lines of which none waits for anything', async () => {
    const lines = 50_000;
    let added = 0;
    await runOf(lines, {
      readLine: () => {
        throw new MillraceError('invalid_json');
      },
      add: () => {
        added += 1;
      },
    }).run();
    expect(added).to.equal(lines);
    // It takes hundreds of ms, of which a turn takes a few.
    expect(turns.count).to.be.above(10);
  });

  describe('with answers that wait for the first line', () => {
    const LINES = 200;
    let written: number;
    let answered: number;
    let added: WrittenLine[];
    let openFirst: () => void;
    let run: LineRun;

    beforeEach(() => {
      [written, answered, added] = [0, 0, []];
      const first = new Promise<void>((resolve) => {
        openFirst = resolve;
      });
      run = runOf(LINES, { readLine: () => line(), infer, add: (each) => added.push(each) });
      let asked = 0;
      async function infer({ requestId, model, stamps }: InferRequest): Promise<InferResult> {
        asked += 1;
        if (asked === 1) await first;
        else answered += 1;
        const items = [{ status: 'ok' as const }];
        return { requestId, model, items, outputs: [], stamps, workers: [], truncated: [], tokens: 0 };
      }
    });

    /** Takes a millisecond to write; the hundredth can't be. */
    function line(): AddressedLine {
      const inputs = [bytesTensor('text', ['a'])];
      return {
        customId: 'x',
        read: () => ({
          request: { model: MODEL, inputs, itemCount: 1, parameters: {} },
          partial: false,
          write: () => {
            const until = performance.now() + 1;
            while (performance.now() < until);
            written += 1;
            if (written === 100) throw new MillraceError('internal');
            return `{"n":${written}}`;
          },
        }),
        refuse: (error) => ({ status: error.spec.status, body: `"${error.code}"` }),
      };
    }

    async function untilOthersAreAnswered(): Promise<void> {
      while (answered < LINES - 1) await new Promise(setImmediate);
    }

    it('writes each in its turn, lets others have theirs, and refuses alone what it cannot write', async () => {
      const ended = run.run();
      await untilOthersAreAnswered();
      expect([written, added.length]).to.deep.equal([0, 0]);
      openFirst();
      const before = turns.count;
      await ended;
      expect(added.map(({ number }) => number)).to.deep.equal(Array.from({ length: LINES }, (_, i) => i + 1));
      const refused = added.filter(({ answer }) => !answer.succeeded);
      expect(refused.map(({ number }) => number)).to.deep.equal([100]);
      expect(refused[0]?.answer.text.join(''))
        .to.include('"status_code":500')
        .and.to.include('"body":"internal"');
      expect(added[199]?.answer.text.join('')).to.include('"body":{"n":200}');
      expect(turns.count - before).to.be.above(10);
    });

    it('adds none once it was stopped', async () => {
      const ended = run.run();
      await untilOthersAreAnswered();
      openFirst();
      while (added.length === 0) await new Promise(setImmediate);
      run.stop();
      const { length } = added;
      await ended;
      for (let i = 0; i < 10; i++) await new Promise(setImmediate);
      expect(added).to.have.length(length).and.length.below(LINES);
    });
  });
});
