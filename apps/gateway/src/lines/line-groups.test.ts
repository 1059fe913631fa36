import { bytesElements, bytesTensor, MillraceError, RedisClock } from '@millrace/shared';
import { expect } from 'chai';
import type { InferRequest, InferResult } from '../inference/request.js';
import { textModel } from '../test-support/models.js';
import { LineGroups, type LineRequest } from './line-groups.js';

const MODEL = textModel('texts');

function lineOf(texts: string[], waitMs = 1000): LineRequest {
  return {
    model: MODEL,
    inputs: [bytesTensor('text', texts)],
    itemCount: texts.length,
    parameters: {},
    waitMs,
  };
}

/** Answers each text with itself; `bad` fails alone. */
function echo(request: InferRequest): InferResult {
  const texts = bytesElements(request.inputs[0] as InferRequest['inputs'][number]);
  return {
    requestId: request.requestId,
    model: request.model,
    items: texts.map((text) =>
      String(Buffer.from(text)) === 'bad'
        ? { status: 'failed', code: 'inference_failed', message: 'bad' }
        : { status: 'ok', tokens: text.byteLength },
    ),
    outputs: [{ name: 'echo', datatype: 'BYTES', itemShape: [], items: texts }],
    stamps: request.stamps,
    workers: [],
    truncated: [],
    tokens: texts.reduce((sum, text) => sum + text.byteLength, 0),
  };
}

function groupsOver(ran: InferRequest[], infer: (request: InferRequest) => Promise<InferResult>): LineGroups {
  return new LineGroups({
    infer: (request) => {
      ran.push(request);
      return infer(request);
    },
    clock: new RedisClock(),
    tenant: 'anonymous',
    priority: 'bulk',
    mostItems: () => 4,
  });
}

function echoed({ outputs }: InferResult): string[] {
  return (outputs[0]?.items ?? []).map((item) => String(Buffer.from(item as Uint8Array)));
}

describe('LineGroups', () => {
  it('runs lines alike together and gives each the result of its own items', async () => {
    const ran: InferRequest[] = [];
    const groups = groupsOver(ran, async (request) => echo(request));
    const results = await Promise.all([
      groups.run(lineOf(['a'])),
      groups.run(lineOf(['bb', 'bad'])),
      groups.run(lineOf(['cccc'])),
    ]);
    expect(ran.map(({ itemCount }) => itemCount)).to.deep.equal([4]);
    expect(results.map(echoed)).to.deep.equal([['a'], ['bb', 'bad'], ['cccc']]);
    expect(results.map(({ tokens }) => tokens)).to.deep.equal([1, 2, 4]);
    expect(results.map(({ items }) => items.map(({ status }) => status))).to.deep.equal([
      ['ok'],
      ['ok', 'failed'],
      ['ok'],
    ]);
  });

  it('runs what is not alike apart', async () => {
    const ran: InferRequest[] = [];
    const groups = groupsOver(ran, async (request) => echo(request));
    await Promise.all([
      groups.run(lineOf(['a'])),
      groups.run({ ...lineOf(['b']), parameters: { truncate: true } }),
      groups.run({ ...lineOf(['c']), operation: 'tokenize' }),
      groups.run(lineOf(['d'], 2000)),
      groups.run({ ...lineOf(['e']), model: textModel('others') }),
    ]);
    expect(ran.map(({ itemCount }) => itemCount)).to.deep.equal([1, 1, 1, 1, 1]);
  });

  it('closes a group before it has more items than it may, and runs a longer line by itself', async () => {
    const ran: InferRequest[] = [];
    const groups = groupsOver(ran, async (request) => echo(request));
    await Promise.all([
      groups.run(lineOf(['a', 'b', 'c'])),
      groups.run(lineOf(['d', 'e'])),
      groups.run(lineOf(['1', '2', '3', '4', '5', '6'])),
    ]);
    expect(ran.map(({ itemCount }) => itemCount)).to.deep.equal([3, 2, 6]);
  });

  it('fails every line of a group that could not be run', async () => {
    const groups = groupsOver([], async () => {
      throw new MillraceError('no_worker');
    });
    const ended = await Promise.allSettled([groups.run(lineOf(['a'])), groups.run(lineOf(['b']))]);
    expect(ended.map((end) => end.status === 'rejected' && end.reason.code)).to.deep.equal([
      'no_worker',
      'no_worker',
    ]);
  });

  it('takes back what runs when it is abandoned', async () => {
    const groups = groupsOver(
      [],
      ({ client }) =>
        new Promise((_, reject) => {
          client.listen(() => reject(new MillraceError('cancelled')));
        }),
    );
    const waiting = groups.run(lineOf(['a'])).catch((error: MillraceError) => error.code);
    groups.abandon();
    const later = groups.run(lineOf(['b'])).catch((error: MillraceError) => error.code);
    expect(await Promise.all([waiting, later])).to.deep.equal(['cancelled', 'cancelled']);
  });
});
