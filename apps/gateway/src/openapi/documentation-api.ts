import { z } from 'zod';
import type { DoorApi } from '../protocols/api-description.js';
import { nativeErrors } from '../protocols/native/problem.js';
import { problemSchema } from '../protocols/native/schema.js';
import { teiErrorSchema, teiErrors } from '../protocols/tei/error-body.js';
import { ASSET_PATH, DOCS_PATH, DOCUMENT_PATH } from './page.js';

const documentSchema = z
  .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })
  .meta({ id: 'OpenApiDocument' });
const pageSchema = z.string().meta({ id: 'Page' });

export const documentationApi: DoorApi = {
  title: 'Documentation',
  description: 'This document, and a page to read it by. Neither needs a key.',
  errors: nativeErrors,
  errorSchema: problemSchema,
  operations: [
    {
      id: 'openApiDocument',
      method: 'get',
      path: DOCUMENT_PATH,
      summary: 'Read this document',
      open: true,
      responses: {
        200: {
          description: 'OpenAPI 3.1.',
          contents: [{ contentType: 'application/json', schema: documentSchema }],
        },
      },
    },
    {
      id: 'docs',
      method: 'get',
      path: DOCS_PATH,
      summary: 'Read this document in a browser, and send requests from there',
      open: true,
      responses: {
        200: { description: 'A page.', contents: [{ contentType: 'text/html', schema: pageSchema }] },
      },
    },
    {
      id: 'asset',
      method: 'get',
      path: ASSET_PATH,
      summary: 'Read a part of that page',
      open: true,
      responses: {
        200: {
          description: 'A script or a style sheet.',
          contents: [
            { contentType: 'text/javascript', schema: pageSchema },
            { contentType: 'text/css', schema: pageSchema },
          ],
        },
      },
      errors: ['not_found'],
    },
  ],
};

/** The same address takes text-embeddings-inference's requests. */
export const rootApi: DoorApi = {
  ...documentationApi,
  errors: teiErrors,
  errorSchema: teiErrorSchema,
  operations: [
    {
      id: 'root',
      method: 'get',
      path: '/',
      summary: 'Be led to the page',
      open: true,
      responses: {
        302: {
          description: 'To /docs.',
          contents: [{ contentType: 'text/plain', schema: pageSchema }],
          headers: [{ name: 'Location', description: 'Where the page is.', schema: z.string() }],
        },
      },
    },
  ],
};
