/** How a hidden state becomes one vector: the mean over the mask, or the first token's. */
export type Pooling = 'mean' | 'cls';

export type Activation = 'gelu' | 'gelu_tanh' | 'quick_gelu' | 'relu' | 'silu';

/** What the graph of a BERT-like encoder depends on. */
export interface EncoderConfig {
  readonly family: 'bert' | 'roberta' | 'distilbert';
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediate: number;
  readonly activation: Activation;
  readonly layerNormEpsilon: number;
  /** Tokens that fit, special ones included. */
  readonly maxPositions: number;
  /** Row of the position table that belongs to the first token. */
  readonly positionOffset: number;
  /** Rows of the word table, if config.json says. */
  readonly vocabulary: number | undefined;
}

/** A config.json that the builder can't follow; the message names the field. */
export class UnsupportedModelError extends Error {
  override readonly name = 'UnsupportedModelError';
}

const FAMILIES: Readonly<Record<string, EncoderConfig['family']>> = {
  bert: 'bert',
  roberta: 'roberta',
  'xlm-roberta': 'roberta',
  camembert: 'roberta',
  distilbert: 'distilbert',
};

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  gelu: 'gelu',
  gelu_new: 'gelu_tanh',
  gelu_fast: 'gelu_tanh',
  gelu_pytorch_tanh: 'gelu_tanh',
  quick_gelu: 'quick_gelu',
  relu: 'relu',
  silu: 'silu',
  swish: 'silu',
};

/** The names that the three families' config.json files use for the same things. */
const FIELDS = {
  hidden: ['hidden_size', 'dim'],
  layers: ['num_hidden_layers', 'n_layers'],
  heads: ['num_attention_heads', 'n_heads'],
  intermediate: ['intermediate_size', 'hidden_dim'],
  activation: ['hidden_act', 'activation'],
} as const;

/**
 * Reads the parts of a Hugging Face config.json that decide the graph; without a model_type it is BERT's.
 *
 * @throws UnsupportedModelError for model types and options that the builder doesn't do.
 */
export function parseEncoderConfig(json: unknown): EncoderConfig {
  if (typeof json !== 'object' || json === null)
    throw new UnsupportedModelError('config.json is not an object');
  const config = json as Record<string, unknown>;
  const family = lookUp(FAMILIES, 'model_type', config.model_type ?? 'bert');
  refuseUnlessAbsent(config, 'is_decoder', false);
  refuseUnlessAbsent(config, 'position_embedding_type', 'absolute');
  const field = (names: readonly [string, string]): string => (family === 'distilbert' ? names[1] : names[0]);
  const hidden = positive(config, field(FIELDS.hidden));
  const heads = positive(config, field(FIELDS.heads));
  if (hidden % heads !== 0)
    throw new UnsupportedModelError(`${heads} heads don't divide a hidden size of ${hidden}`);
  if (config.embedding_size !== undefined) refuseUnlessAbsent(config, 'embedding_size', hidden);
  const positionOffset = family === 'roberta' ? whole(config, 'pad_token_id', 1) + 1 : 0;
  const activation = field(FIELDS.activation);
  return {
    family,
    hidden,
    layers: positive(config, field(FIELDS.layers)),
    heads,
    intermediate: positive(config, field(FIELDS.intermediate)),
    activation: lookUp(ACTIVATIONS, activation, config[activation] ?? 'gelu'),
    layerNormEpsilon: epsilon(config.layer_norm_eps),
    maxPositions: maxPositions(positive(config, 'max_position_embeddings'), positionOffset),
    positionOffset,
    vocabulary: config.vocab_size === undefined ? undefined : positive(config, 'vocab_size'),
  };
}

function maxPositions(rows: number, offset: number): number {
  if (rows > offset) return rows - offset;
  throw new UnsupportedModelError(`max_position_embeddings ${rows} leaves no place after pad_token_id`);
}

function lookUp<T>(table: Readonly<Record<string, T>>, field: string, value: unknown): T {
  const found = typeof value === 'string' && Object.hasOwn(table, value) ? table[value] : undefined;
  if (found !== undefined) return found;
  const known = Object.keys(table).join(', ');
  throw new UnsupportedModelError(`${field} ${JSON.stringify(value)} is not supported (supported: ${known})`);
}

function refuseUnlessAbsent(config: Record<string, unknown>, field: string, only: unknown): void {
  const value = config[field];
  if (value === undefined || value === null || value === only) return;
  throw new UnsupportedModelError(
    `${field} ${JSON.stringify(value)} is not supported (only ${JSON.stringify(only)})`,
  );
}

function positive(config: Record<string, unknown>, field: string): number {
  const value = whole(config, field);
  if (value === 0) throw new UnsupportedModelError(`${field} must be more than 0`);
  return value;
}

function whole(config: Record<string, unknown>, field: string, fallback?: number): number {
  const value = config[field] ?? fallback;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new UnsupportedModelError(`${field} must be a whole number, not ${JSON.stringify(value)}`);
}

/** DistilBERT's is fixed at 1e-12, which is BERT's default too. */
function epsilon(value: unknown): number {
  if (value === undefined) return 1e-12;
  if (typeof value === 'number' && value > 0 && value < 1) return value;
  throw new UnsupportedModelError(`layer_norm_eps must be between 0 and 1, not ${JSON.stringify(value)}`);
}
