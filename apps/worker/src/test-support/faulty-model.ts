import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DataType, GraphBuilder } from '@millrace/onnx';
import type { Tensor } from '@millrace/shared';
import type { TestModels } from './models.js';
import { uniqueName } from './redis.js';

/** The models that come with Millrace. */
const SHIPPED_MODELS = fileURLToPath(new URL('../../../../models', import.meta.url));

/**
 * What one item asks of the faulty model. Its answer is `value + index`; whatever else it does, it does to
 * the whole run that it is in.
 */
export interface FaultyItem {
  /** Comes back, so that answers can be told apart. */
  value: number;
  /** 0 to 3 are in range; with any other the run throws. */
  index?: number;
  /** Turns of a loop, about a microsecond or a few each: {@link FOREVER} hangs the run. */
  spins?: number;
  /** FP32 elements to allocate and fill: {@link TOO_MANY_ELEMENTS} are refused, a few billion take the memory. */
  elements?: number;
}

export const OUT_OF_RANGE = 99;
/**
 * Centuries.
 */
export const FOREVER = 2 ** 53 - 1;
/** 1 PiB: more than any machine's address space gives. */
export const TOO_MANY_ELEMENTS = 2 ** 48;

const CONTROLS = ['value', 'index', 'spins', 'elements'] as const;

/** A model that answers `value + index`, and fails, hangs or devours memory when an item asks for it. */
function faultyModel(): Uint8Array {
  const graph = new GraphBuilder('faulty');
  for (const control of CONTROLS) graph.input(control, DataType.INT64, ['batch', 1]);
  const table = graph.constant('table', [4], BigInt64Array.of(0n, 1n, 2n, 3n));
  const found = graph.op('Gather', [table, 'index']);
  const turns = graph.op('Loop', [graph.op('ReduceSum', ['spins'], { keepdims: 0 }), '', graph.int(0)], {
    body: counting(),
  });
  const shape = graph.op('ReduceSum', ['elements', graph.ints(0)], { keepdims: 0 });
  const filled = graph.op('ReduceMax', [graph.op('ConstantOfShape', [shape])], { keepdims: 0 });
  const allocated = graph.op('Cast', [filled], { to: DataType.INT64 });
  // Added as nothing, but onnxruntime can't know: it may leave out neither the loop nor the allocation.
  const nothing = graph.op('Mul', [graph.op('Add', [turns, allocated]), graph.int(0)]);
  graph.op('Add', [graph.op('Add', ['value', found]), nothing], {}, 'answer');
  graph.output('answer', DataType.INT64, ['batch', 1]);
  return graph.toBytes();
}

/** A loop's body: counts its turns. */
function counting(): GraphBuilder {
  const body = new GraphBuilder('counting');
  body.input('turn', DataType.INT64, []);
  body.input('going', DataType.BOOL, []);
  body.input('turns', DataType.INT64, []);
  body.op('Identity', ['going'], {}, 'going_on');
  body.op('Add', ['turns', body.int(1)], {}, 'turns_made');
  body.output('going_on', DataType.BOOL, []);
  body.output('turns_made', DataType.INT64, []);
  return body;
}

export interface FaultyOptions {
  batching?: object;
  session?: object;
  /** Runs take so long, as on a device: `{ runMs, itemMs }`. */
  simulate?: object;
  /** Shipped models to put beside it, so that one cluster serves all of them. */
  beside?: readonly string[];
}

/** A models folder with the faulty model under a name of its own. */
export async function faultyModels(options: FaultyOptions = {}): Promise<TestModels> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-models-'));
  const modelsDir = join(folder, 'models');
  const name = uniqueName('faulty');
  await mkdir(join(modelsDir, name), { recursive: true });
  await writeFile(join(modelsDir, name, 'faulty.onnx'), faultyModel());
  const spec = (tensor: string) => ({ name: tensor, datatype: 'INT64', shape: [-1, 1] });
  const manifest = {
    name,
    version: 1,
    task: 'tensor',
    build: { from: 'onnx', file: 'faulty.onnx' },
    inputs: CONTROLS.map(spec),
    outputs: [spec('answer')],
    batching: options.batching ?? {},
    session: { threads: 1, ...options.session },
    ...(options.simulate ? { simulate: options.simulate } : {}),
  };
  // JSON is YAML.
  await writeFile(join(modelsDir, name, 'model.yaml'), JSON.stringify(manifest));
  for (const shipped of options.beside ?? []) {
    await cp(join(SHIPPED_MODELS, shipped), join(modelsDir, shipped), { recursive: true });
  }
  return { modelsDir, cacheDir: join(folder, 'cache'), name, remove: () => rm(folder, { recursive: true }) };
}

/** An item as the native door takes it: POST /v1/models/{name}/predict with `{"inputs": [item, ...]}`. */
export function faultyInput(item: FaultyItem): Record<string, number[]> {
  return Object.fromEntries(CONTROLS.map((control) => [control, [item[control] ?? 0]]));
}

/** Items as a job carries them. */
export function faultyTensors(...items: FaultyItem[]): Tensor[] {
  return CONTROLS.map((name) => {
    const column = BigInt64Array.from(items, (item) => BigInt(item[name] ?? 0));
    return { name, datatype: 'INT64', shape: [items.length, 1], data: new Uint8Array(column.buffer) };
  });
}

/** The answers in a reply's tensors. */
export function faultyAnswers(outputs: readonly Tensor[]): number[] {
  const [output] = outputs;
  return output ? [...new BigInt64Array(Uint8Array.from(output.data).buffer)].map(Number) : [];
}
