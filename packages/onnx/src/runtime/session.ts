import ort from 'onnxruntime-node';

/** A session on one CPU thread that doesn't spin, so that it disturbs nobody. */
export function openSession(
  model: Uint8Array,
  options: ort.InferenceSession.SessionOptions = {},
): Promise<ort.InferenceSession> {
  return ort.InferenceSession.create(model, {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    ...options,
  });
}

/** The data of a float output. */
export function floats(outputs: ort.InferenceSession.OnnxValueMapType, name: string): Float32Array {
  const data = outputs[name]?.data;
  if (data instanceof Float32Array) return data;
  throw new TypeError(`the model has no float32 output ${name}`);
}
