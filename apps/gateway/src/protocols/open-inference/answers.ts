import { DATATYPES } from '@millrace/shared';
import { z } from 'zod';

/** The bodies of the Open Inference Protocol's HTTP answers, as they are documented. */

const datatype = z.enum(DATATYPES);
const shape = z.array(z.int().min(-1));

export const serverMetadataSchema = z
  .strictObject({ name: z.string(), version: z.string(), extensions: z.array(z.string()) })
  .meta({ id: 'ServerMetadata' });

const tensorMetadata = z
  .strictObject({ name: z.string(), datatype, shape: shape.describe('Items first; -1 is any size.') })
  .meta({ id: 'TensorMetadata' });

export const modelMetadataSchema = z
  .strictObject({
    name: z.string(),
    versions: z.array(z.string()),
    platform: z.string(),
    inputs: z.array(tensorMetadata),
    outputs: z.array(tensorMetadata),
  })
  .meta({ id: 'ModelMetadata' });

export const modelReadySchema = z
  .strictObject({ name: z.string(), ready: z.boolean() })
  .meta({ id: 'ModelReady' });

const inferOutput = z
  .strictObject({
    name: z.string(),
    shape: z.array(z.int().min(0)).describe('Items first.'),
    datatype,
    parameters: z
      .strictObject({ binary_data_size: z.int().min(0) })
      .optional()
      .describe('Where the data is not here but behind the JSON.'),
    data: z
      .array(z.union([z.number(), z.string(), z.boolean(), z.null()]))
      .optional()
      .describe('Elements, flat, row-major; `null` is a number that is none (NaN) or has no end.'),
  })
  .meta({ id: 'InferOutput' });

export const inferAnswerSchema = z
  .strictObject({
    model_name: z.string(),
    model_version: z.string(),
    id: z.string().optional().describe('The client’s own, if it sent one.'),
    parameters: z
      .strictObject({
        truncated: z.string().describe('Indices of the texts that were cut, with commas between.'),
      })
      .optional(),
    outputs: z.array(inferOutput),
  })
  .meta({ id: 'InferAnswer' });

const duration = z
  .strictObject({ count: z.int().min(0), ns: z.int().min(0).describe('All together, in nanoseconds.') })
  .meta({ id: 'StatisticsDuration' });

export const statisticsSchema = z
  .strictObject({
    model_stats: z.array(
      z.strictObject({
        name: z.string(),
        version: z.string(),
        last_inference: z.int().min(0).describe('When the last one ended, in epoch ms; 0: none yet.'),
        inference_count: z.int().min(0).describe('Items.'),
        execution_count: z.int().min(0).describe('Runs of the model.'),
        inference_stats: z.strictObject({
          success: duration,
          fail: duration,
          queue: duration,
          compute_input: duration,
          compute_infer: duration,
          compute_output: duration,
        }),
      }),
    ),
  })
  .meta({ id: 'ModelStatistics', description: 'What this gateway counted since it was started.' });

export const repositoryIndexAnswerSchema = z
  .array(
    z.strictObject({
      name: z.string(),
      version: z.string().optional(),
      state: z.enum(['READY', 'UNAVAILABLE']),
      reason: z.string(),
    }),
  )
  .meta({ id: 'RepositoryIndex' });

export const openInferenceErrorSchema = z
  .strictObject({ error: z.string().describe('What is wrong. It begins with the field at fault.') })
  .meta({ id: 'OpenInferenceError' });
