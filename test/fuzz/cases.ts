import { Dice } from '../support/dice.js';
import { binaryRequest } from './binary-requests.js';
import { mutateBody } from './body-mutations.js';
import { RAW_MUTATIONS, type RawCase } from './http-mutations.js';
import { askedRequest, jsonRequest, loginRequest, validCall, type Wanted, written } from './requests.js';

export interface FuzzCase extends RawCase {
  index: number;
  /** Whether it may break its connection, and so gets one of its own. */
  raw: boolean;
}

const RAW_SHARE = 0.3;
const ASKED_SHARE = 0.15;
const LOGIN_SHARE = 0.03;
/** Tensors behind JSON. */
const BINARY_SHARE = 0.1;
/** Work for the workers, among what is refused at the door. */
const VALID_SHARE = 0.15;
const SEED_STEP = 0x9e3779b1;

/** The case of an index: the same for the same seed, whatever came before. */
export function caseOf(seed: number, index: number): FuzzCase {
  const dice = new Dice(Math.imul(seed, 0x85ebca6b) ^ Math.imul(index + 1, SEED_STEP));
  if (dice.chance(RAW_SHARE)) {
    const base = plainRequest(dice);
    // The end of an answer to HEAD can't be told from its bytes once requests are garbled.
    const request = base.method === 'HEAD' ? { ...base, method: 'GET' } : base;
    const raw = dice.pick(RAW_MUTATIONS)(request, dice);
    return { ...raw, what: `${raw.what} (${request.method} ${request.target})`, index, raw: true };
  }
  const { request, what } = wellFramed(dice);
  return {
    index,
    raw: false,
    bytes: written(request),
    what: `${request.method} ${request.target} ${what}`,
    methods: [request.method],
    door: request.door,
  };
}

function plainRequest(dice: Dice): Wanted {
  if (dice.chance(0.3)) return askedRequest(dice);
  if (dice.chance(0.1)) return loginRequest(dice);
  const { path, door, body } = validCall(dice);
  return jsonRequest(path, door, Buffer.from(JSON.stringify(body)));
}

/** Right as HTTP; what is wrong is in the body, or that it is asked for at all. */
function wellFramed(dice: Dice): { request: Wanted; what: string } {
  if (dice.chance(ASKED_SHARE)) return { request: askedRequest(dice), what: '' };
  if (dice.chance(LOGIN_SHARE)) return { request: loginRequest(dice), what: '' };
  if (dice.chance(BINARY_SHARE)) return binaryRequest(dice);
  const { path, door, body } = validCall(dice);
  if (dice.chance(VALID_SHARE)) {
    // Few keys for many bodies: most come again, with the same body or another.
    const key: [string, string][] = dice.chance(0.2) ? [['Idempotency-Key', `key-${dice.below(50)}`]] : [];
    const request = jsonRequest(path, door, Buffer.from(JSON.stringify(body)), key);
    return { request, what: 'as it should be' };
  }
  const mutated = mutateBody(body, dice);
  return { request: jsonRequest(path, door, mutated.body), what: mutated.what };
}
