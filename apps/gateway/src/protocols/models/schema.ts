import { DATATYPES } from '@millrace/shared';
import { z } from 'zod';

const tensorSpec = z
  .strictObject({
    name: z.string(),
    datatype: z.enum(DATATYPES),
    shape: z.array(z.int().min(-1)).describe('Items on the first axis; -1 is any size.'),
    optional: z.boolean().optional().describe('Whether a request may leave it out.'),
  })
  .meta({ id: 'TensorSpec' });

export const modelSchema = z
  .strictObject({
    id: z.string().describe('The name to ask for it by.'),
    object: z.literal('model'),
    created: z.int().min(0).describe('Since when it is known here, in epoch seconds.'),
    owned_by: z.string(),
    version: z.string().describe('The one that is asked where none is named.'),
    versions: z.array(z.string()),
    task: z.string(),
    inputs: z.array(tensorSpec),
    outputs: z.array(tensorSpec),
    limits: z.strictObject({
      maxRequestItems: z.int().min(1).describe('Most inputs of one request.'),
      maxTokens: z.int().min(1).optional().describe('Most tokens of one text.'),
    }),
    ready: z.boolean().describe('Whether a worker serves it now.'),
  })
  .meta({ id: 'Model' });

export const modelListSchema = z
  .strictObject({ object: z.literal('list'), data: z.array(modelSchema) })
  .meta({ id: 'ModelList' });
