import { DATATYPES } from '@millrace/shared';
import { z } from 'zod';
import { MAX_AXES } from '../model-tensors.js';

/** The bodies of the Open Inference Protocol's HTTP requests, as they are read and as they are documented. */

/** Checked by hand: hundreds of thousands of wrong numbers must not become as many findings. */
const shape = z
  .unknown()
  .check(({ value, issues }) => {
    const fault = shapeFault(value);
    if (fault) issues.push({ code: 'custom', input: value, ...fault });
  })
  .transform((value) => value as number[])
  .meta({
    type: 'array',
    items: { type: 'integer', minimum: 0 },
    maxItems: MAX_AXES,
    description:
      'Size of each dimension, items first. [N,1] stands for [N] where the model has one dimension.',
  });

function shapeFault(value: unknown): { message: string; path: number[] } | undefined {
  if (value === undefined) return { message: 'is missing', path: [] };
  if (!Array.isArray(value)) return { message: 'must be a list', path: [] };
  if (value.length > MAX_AXES) return { message: `must have at most ${MAX_AXES} dimensions`, path: [] };
  const at = value.findIndex((size) => !Number.isSafeInteger(size) || size < 0);
  return at < 0 ? undefined : { message: 'must be a whole number >= 0', path: [at] };
}

const PARAMETERS = {
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'boolean'] },
} as const;

const input = z.object({
  name: z.string(),
  shape,
  datatype: z.string().meta({ enum: DATATYPES, description: "The model's own datatype of this input." }),
  parameters: z
    .object({
      binary_data_size: z
        .int()
        .min(0)
        .optional()
        .describe('The data is not here but behind the JSON: so many bytes of it.'),
      shared_memory_region: z.unknown().optional().meta({ not: {} }),
    })
    .optional()
    .meta({ additionalProperties: true }),
  /** Read element by element: see read-tensor.ts and read-texts.ts. */
  data: z.unknown().optional().meta({
    type: 'array',
    description:
      'Elements, row-major, flat or nested as the shape says. Numbers of INT64 and UINT64 keep all their digits; FP16 and BF16 have no form here.',
  }),
});

const output = z.object({
  name: z.string(),
  parameters: z
    .object({
      binary_data: z
        .boolean()
        .optional()
        .describe('Whether to answer with bytes behind the JSON. Default: what binary_data_output says.'),
      classification: z.unknown().optional().meta({ not: {} }),
      shared_memory_region: z.unknown().optional().meta({ not: {} }),
    })
    .optional()
    .meta({ additionalProperties: true }),
});

export const inferRequestSchema = z
  .object({
    id: z.string().optional().describe('Echoed in the answer, and not used otherwise.'),
    /** Read by readParameters, at every door alike. */
    parameters: z
      .unknown()
      .optional()
      .meta({
        ...PARAMETERS,
        properties: {
          binary_data_output: {
            type: 'boolean',
            description: 'Whether outputs are answered as bytes behind the JSON. Default: false.',
          },
          timeout: {
            type: 'integer',
            minimum: 0,
            description: 'Microseconds after which the answer is worthless; 0 is the default wait.',
          },
          priority: {
            type: 'integer',
            minimum: 0,
            description: '1 is the highest, 2 below it, 3 and more the lowest; 0, the default, is as 1.',
          },
        },
        description: 'Others than those named are given to the model.',
      }),
    inputs: z.array(input).min(1),
    outputs: z.array(output).optional().describe('The outputs to answer with, in order. Default: all.'),
  })
  .meta({ description: 'An inference request of the Open Inference Protocol, version 2.' });

export type InferRequestBody = z.output<typeof inferRequestSchema>;

export const repositoryIndexSchema = z.object({
  ready: z.boolean().optional().describe('Only models that can be asked now. Default: false.'),
});
