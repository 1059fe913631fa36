import type { Dice } from '../support/dice.js';
import { mutateBody } from './body-mutations.js';
import { jsonRequest, type Wanted } from './requests.js';

/** Names and bytes of an element of the identity model's inputs. */
const INPUTS: readonly [[string, string, number], ...[string, string, number][]] = [
  ['fp32', 'FP32', 4],
  ['int64', 'INT64', 8],
  ['uint8', 'UINT8', 1],
  ['bool', 'BOOL', 1],
  ['bytes', 'BYTES', 4],
];
const LENGTHS = ['0', '-1', '1e3', '0x10', '+5', ' ', '5, 5', '99999999999999999999', 'NaN', '1.0'] as const;
const SHARE_AS_IT_SHOULD_BE = 0.2;

/** Tensors behind JSON, mostly with something wrong: in the JSON, in the bytes, or in what tells them apart. */
export function binaryRequest(dice: Dice): { request: Wanted; what: string } {
  const items = 1 + dice.below(3);
  const each = 1 + dice.below(4);
  const tensors: Buffer[] = [];
  const inputs = INPUTS.filter(() => dice.chance(0.4)).map(([name, datatype, bytes]) => {
    // Zeros are valid in every datatype: as BYTES they are empty strings.
    const zeros = dice.chance(0.5) || datatype === 'BYTES' || datatype === 'BOOL';
    const size = items * each * bytes;
    tensors.push(zeros ? Buffer.alloc(size) : dice.bytes(size));
    return { name, datatype, shape: [items, each], parameters: { binary_data_size: size } };
  });
  const body = { inputs, ...(dice.chance(0.3) ? { parameters: { binary_data_output: true } } : {}) };
  let json: Buffer = Buffer.from(JSON.stringify(body));
  let bytes: Buffer = Buffer.concat(tensors);
  const faults: string[] = [];
  if (!dice.chance(SHARE_AS_IT_SHOULD_BE)) {
    if (dice.chance(0.5)) {
      const mutated = mutateBody(body, dice);
      json = mutated.body;
      faults.push(mutated.what);
    }
    if (dice.chance(0.5)) {
      const cut = dice.chance(0.5);
      bytes = cut
        ? bytes.subarray(0, dice.below(bytes.byteLength + 1))
        : Buffer.concat([bytes, dice.bytes(9)]);
      faults.push(cut ? 'fewer bytes' : 'more bytes');
    }
    if (dice.chance(0.3)) {
      bytes = dice.bytes(bytes.byteLength);
      faults.push('other bytes');
    }
  }
  const wrongLength = faults.length > 0 && dice.chance(0.3);
  const length = wrongLength
    ? dice.chance(0.5)
      ? dice.pick(LENGTHS)
      : String(dice.below(json.byteLength + bytes.byteLength + 20))
    : String(json.byteLength);
  if (wrongLength) faults.push(`length ${length}`);
  const request = jsonRequest('/v2/models/identity/infer', 'open', Buffer.concat([json, bytes]), [
    ['Inference-Header-Content-Length', length],
  ]);
  return { request, what: `in bytes, ${faults.join(', ') || 'as it should be'}` };
}
