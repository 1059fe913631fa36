import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { SessionOptions, SimulatedDevice } from '@millrace/shared';
import { InferenceSession } from 'onnxruntime-node';
import type { FromSession, SessionThreadOptions, ToSession, WireTensor } from './messages.js';
import { monotonicMs } from './monotonic.js';
import { fromOrt, specsOf, toOrt } from './ort-tensors.js';

/**
 * A thread with one onnxruntime session. `run()` of onnxruntime-node is synchronous native code, so it gets
 * a thread of its own; and a thread must never be ended inside it (that aborts the process): it is told to
 * release, releases, and exits by having nothing left to do.
 */
const port = parentPort as MessagePort;
const options = workerData as SessionThreadOptions;
const skipped = options.skip && new Int32Array(options.skip);

function send(message: FromSession, moved: ArrayBuffer[] = []): void {
  port.postMessage(message, moved);
}

function ortOptions(session: SessionOptions, device: 'cpu' | 'cuda'): InferenceSession.SessionOptions {
  const spinning = session.allowSpinning ? '1' : '0';
  return {
    executionProviders: device === 'cuda' ? ['cuda', 'cpu'] : ['cpu'],
    graphOptimizationLevel: session.graphOptimizationLevel,
    intraOpNumThreads: session.intraOpThreads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    enableCpuMemArena: true,
    // Made for inputs of one shape: groups have any, and each would have one block laid out for it beside what others use.
    enableMemPattern: false,
    ...(options.profilePrefix ? { enableProfiling: true, profileFilePrefix: options.profilePrefix } : {}),
    // Failures come back as errors; onnxruntime's own lines would put clients' inputs into the log.
    logSeverityLevel: 4,
    extra: {
      session: { intra_op: { allow_spinning: spinning }, inter_op: { allow_spinning: spinning } },
      ...(session.disabledOptimizers.length > 0
        ? { optimization: { disable_specified_optimizers: session.disabledOptimizers.join(';') } }
        : {}),
    },
  };
}

async function load(): Promise<{ session: InferenceSession; device: 'cpu' | 'cuda'; warning?: string }> {
  const { modelFile, device } = options;
  try {
    return { session: await InferenceSession.create(modelFile, ortOptions(options.session, device)), device };
  } catch (error) {
    if (device === 'cpu') throw error;
    // onnxruntime-node has no fallback of its own when CUDA's libraries are missing.
    const session = await InferenceSession.create(modelFile, ortOptions(options.session, 'cpu'));
    return { session, device: 'cpu', warning: `CUDA cannot be used: ${(error as Error).message}` };
  }
}

function simulatedMs({ runMs, itemMs }: SimulatedDevice, inputs: readonly WireTensor[]): number {
  return runMs + itemMs * (inputs[0]?.shape[0] ?? 0);
}

/** Blocks this thread as a run does, but leaves the core to others. */
function sleepUntil(at: number): void {
  const ms = at - performance.now();
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function run(session: InferenceSession, message: Extract<ToSession, { type: 'run' }>): Promise<void> {
  const late = message.startBy !== undefined && monotonicMs() > message.startBy;
  if (late || (skipped && Atomics.load(skipped, 0) === message.id)) {
    send({ type: 'not-run', id: message.id });
    return;
  }
  try {
    const feeds = Object.fromEntries(message.inputs.map((tensor) => [tensor.name, toOrt(tensor)]));
    const began = performance.now();
    const results = await session.run(feeds);
    if (options.simulate) sleepUntil(began + simulatedMs(options.simulate, message.inputs));
    const runMs = performance.now() - began;
    const outputs = Object.entries(results).map(([name, tensor]) => fromOrt(name, tensor));
    send(
      { type: 'ran', id: message.id, outputs, runMs },
      outputs.map((output) => output.data.buffer),
    );
  } catch (error) {
    send({ type: 'run-failed', id: message.id, message: (error as Error).message });
  }
}

try {
  const { session, device, warning } = await load();
  // Runs go one after the other: the chain is the thread's only queue.
  let chain = Promise.resolve();
  port.on('message', (message: ToSession) => {
    chain = chain.then(async () => {
      if (message.type === 'run') return run(session, message);
      if (options.profilePrefix) session.endProfiling();
      await session.release();
      port.close();
    });
  });
  const signature = { inputs: specsOf(session.inputMetadata), outputs: specsOf(session.outputMetadata) };
  send({ type: 'loaded', device, signature, ...(warning ? { warning } : {}) });
} catch (error) {
  send({ type: 'load-failed', message: (error as Error).message });
  port.close();
}
