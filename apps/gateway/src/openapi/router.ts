import { readFile } from 'node:fs/promises';
import type { RedisClock } from '@millrace/shared';
import { type RequestHandler, type Response, Router } from 'express';
import { contextOf } from '../http/context.js';
import { methodNotAllowed } from '../http/errors.js';
import { type Answer, respond, timingsOf } from '../http/respond.js';
import { pageHeaders } from '../http/security-headers.js';
import { ASSET_PATH, DOCS_PATH, DOCUMENT_PATH, PAGE, SCRIPT, STYLE } from './page.js';

const HTML = 'text/html; charset=utf-8';
const TEXT = 'text/plain; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT_TYPE = 'text/javascript; charset=utf-8';
type Shown = Omit<Answer, 'status'> & { status?: number };

/** Swagger UI is one of a release: a browser may keep it for this many seconds without asking. */
const CACHE_SECONDS = 3600;

/** What the page is made of, by name: text of ours, or where a file of Swagger UI lies. */
const ASSETS: Readonly<Record<string, { contentType: string; text?: string; url?: string }>> = {
  'page.css': { contentType: CSS, text: STYLE },
  'page.js': { contentType: SCRIPT_TYPE, text: SCRIPT },
  'swagger-ui.css': { contentType: CSS, url: import.meta.resolve('swagger-ui-dist/swagger-ui.css') },
  'swagger-ui-bundle.js': {
    contentType: SCRIPT_TYPE,
    url: import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  },
};

/**
 * `GET /openapi.json`, and at `GET /docs` a page to read it by and to send requests from; a person who opens the
 * root is led there. Open, as the dashboard's login is: there is nothing in them that a release does not show.
 * @param document called when it is first asked for.
 */
export function documentationRouter(clock: RedisClock, document: () => object): Router {
  const router = Router({ caseSensitive: true });
  const show = (res: Response, answer: Shown): void =>
    respond(res, { status: 200, ...answer }, timingsOf({}, contextOf(res).received, clock.now()));
  let written: string | undefined;
  router
    .route(DOCUMENT_PATH)
    .get((_req, res) => {
      written ??= JSON.stringify(document());
      show(res, { contentType: 'application/json', body: written });
    })
    .all(methodNotAllowed('GET'));
  router
    .route(DOCS_PATH)
    .get(asPage, (_req, res) => show(res, { contentType: HTML, body: PAGE }))
    .all(methodNotAllowed('GET'));
  router
    .route(ASSET_PATH)
    .get(async (req, res, next) => {
      const asset = await readAsset(req.params.asset);
      if (!asset) next();
      else show(res, { ...asset, headers: ['Cache-Control', `max-age=${CACHE_SECONDS}`] });
    })
    .all(methodNotAllowed('GET'));
  // Relative, for a gateway behind a path prefix.
  const headers = ['Location', `.${DOCS_PATH}`];
  router
    .route('/')
    .get((_req, res) => show(res, { status: 302, contentType: TEXT, body: 'See /docs.\n', headers }))
    .all(methodNotAllowed('GET', 'POST'));
  return router;
}

const setPageHeaders = pageHeaders();

/** An answer that is a page: with its own security headers in place of those of data. */
const asPage: RequestHandler = (req, res, next) => {
  contextOf(res).securityHeaders = [];
  setPageHeaders(req, res, next);
};

async function readAsset(name: string): Promise<Shown | undefined> {
  const asset = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (!asset) return undefined;
  const { contentType, text, url } = asset;
  return { contentType, body: text ?? (await readFile(new URL(url ?? ''))) };
}
