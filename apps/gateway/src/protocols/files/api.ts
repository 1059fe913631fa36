import { z } from 'zod';
import { type ApiHeader, type ApiParameter, BYTES, type DoorApi } from '../api-description.js';
import { openaiErrorSchema } from '../openai/answers.js';
import { filesErrors } from './errors.js';
import {
  deletedFileSchema,
  fileListSchema,
  fileSchema,
  listFilesQuerySchema,
  uploadSchema,
} from './schema.js';

const JSON_TYPE = 'application/json';
const FILE = { contentType: JSON_TYPE, schema: fileSchema };
const CONTENT = [{ contentType: 'application/octet-stream', schema: BYTES }] as const;

/** What the query's texts must be, where that is not any text. */
const listParameters: Readonly<Record<string, z.ZodType>> = {
  purpose: z.enum(['batch', 'batch_output']),
  limit: z.int().min(1).max(10_000),
  order: z.enum(['asc', 'desc']),
};

const ETAG: ApiHeader = {
  name: 'ETag',
  description: 'Stands for the bytes of the file.',
  schema: z.string(),
};
const RANGE: readonly ApiParameter[] = [
  {
    name: 'Range',
    in: 'header',
    description:
      'The bytes that are wanted, `bytes=0-999` or the like. Several ranges at once are answered with the whole.',
    schema: z.string(),
  },
  {
    name: 'If-Range',
    in: 'header',
    description:
      'The `ETag` of what is there already: where it is another file by now, the whole is the answer.',
    schema: z.string(),
  },
  {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of the last answer.',
    schema: z.string(),
  },
];

export const filesApi: DoorApi = {
  title: 'Files',
  description:
    'Files of bulk work, in OpenAI’s shapes: what is sent in, and what batches write. A file belongs to the API key that sent it; another key’s are not there.',
  errors: filesErrors,
  errorSchema: openaiErrorSchema,
  operations: [
    {
      id: 'listFiles',
      method: 'get',
      path: '/v1/files',
      summary: 'List your files',
      parameters: Object.entries(listFilesQuerySchema.shape).map(([name, schema]) => ({
        name,
        in: 'query' as const,
        description: schema.description ?? '',
        schema: listParameters[name] ?? z.string(),
      })),
      responses: {
        200: {
          description: 'A page of files.',
          contents: [{ contentType: JSON_TYPE, schema: fileListSchema }],
        },
      },
      errors: ['invalid_input', 'queue_unavailable'],
    },
    {
      id: 'uploadFile',
      method: 'post',
      path: '/v1/files',
      summary: 'Send a file in',
      description:
        'It is stored as it comes and never held in memory. A body with `Content-Encoding: gzip` is inflated on the way; a file that is compressed itself is kept as it is.',
      parameters: [
        {
          name: 'Idempotency-Key',
          in: 'header',
          description:
            'Names the file, 1 to 255 printable ASCII characters. The same bytes under the same key are the same file; others are refused with 422.',
          schema: z.string().regex(/^[\x20-\x7e]{1,255}$/),
        },
      ],
      request: { contents: [{ contentType: 'multipart/form-data', schema: uploadSchema }] },
      responses: {
        200: {
          description: 'The file, stored.',
          contents: [FILE],
          headers: [
            {
              name: 'Idempotency-Replayed',
              description: '`true` where the file of that key was there already.',
              schema: z.literal('true'),
            },
          ],
        },
      },
      errors: [
        'invalid_input',
        'invalid_encoding',
        'forbidden',
        'request_timeout',
        'body_too_large',
        'unsupported_media_type',
        'idempotency_key_reused',
        'file_limit',
        'queue_unavailable',
        'storage_unavailable',
        'storage_full',
      ],
    },
    {
      id: 'getFile',
      method: 'get',
      path: '/v1/files/:file',
      summary: 'Describe a file',
      responses: { 200: { description: 'The file.', contents: [FILE] } },
      errors: ['file_not_found', 'queue_unavailable'],
    },
    {
      id: 'deleteFile',
      method: 'delete',
      path: '/v1/files/:file',
      summary: 'Delete a file',
      responses: {
        200: {
          description: 'It is gone.',
          contents: [{ contentType: JSON_TYPE, schema: deletedFileSchema }],
        },
      },
      errors: ['file_not_found', 'queue_unavailable'],
    },
    {
      id: 'getFileContent',
      method: 'get',
      path: '/v1/files/:file/content',
      summary: 'The bytes of a file',
      parameters: RANGE,
      responses: {
        200: { description: 'All of it.', contents: CONTENT, headers: [ETAG] },
        206: {
          description: 'The range that was asked for.',
          contents: CONTENT,
          headers: [ETAG, { name: 'Content-Range', description: 'Which it is.', schema: z.string() }],
        },
        304: { description: 'It is the file that is known already.', contents: [] },
      },
      errors: ['file_not_found', 'range_not_satisfiable', 'queue_unavailable', 'storage_unavailable'],
    },
  ],
};
