import { MillraceError, type ModelDescription } from '@millrace/shared';
import type { Request, Response } from 'express';
import { contextOf } from '../../http/context.js';
import { asksToBeKept, type KeepLimits, readPreferences } from '../preferences.js';
import { readBy } from '../read-by.js';
import { type LineParts, LineStream } from './line-stream.js';
import { streamQuerySchema } from './schema.js';

export interface StreamParts extends LineParts {
  settings: LineParts['settings'] & KeepLimits & { waitMs: number };
}

/**
 * Answers a predict call whose body is lines.
 * @throws MillraceError for what is wrong with the request itself, before its first line is read.
 */
export async function predictLines(
  req: Request,
  res: Response,
  parts: StreamParts,
  model: ModelDescription,
): Promise<void> {
  const { settings, state } = parts;
  const { headers } = req;
  const inOrder = readBy(streamQuerySchema, req.query, 'query').order === 'input';
  if (headers['idempotency-key'] !== undefined) {
    throw refused('Idempotency-Key', 'it names one request, and each line is one.');
  }
  if (asksToBeKept(headers)) {
    throw refused('Prefer', 'respond-async keeps one request, and a stream is answered while it comes.');
  }
  const preferred = readPreferences(headers, contextOf(res).received, settings);
  if (state.draining) throw new MillraceError('shutting_down', undefined, { retryAfterSeconds: 1 });
  const stream = new LineStream(req, res, parts, {
    model,
    inOrder,
    priority: preferred.priority ?? 'interactive',
    waitMs: preferred.waitMs ?? settings.waitMs,
  });
  await stream.run();
}

function refused(header: string, why: string): MillraceError {
  const text = `The header ${header} has no meaning for a stream of lines: ${why}`;
  return new MillraceError('invalid_input', text, { field: header });
}
