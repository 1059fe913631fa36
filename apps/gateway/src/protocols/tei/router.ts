import { MillraceError, type ModelDescription } from '@millrace/shared';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { readBody, requireJsonType } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { respond, respondJson, timingsOf } from '../../http/respond.js';
import { parseStrictJson } from '../../http/strict-json.js';
import type { AnswerWriter } from '../answer-writer.js';
import type { DoorParts } from '../door-parts.js';
import { requireTexts } from '../limits.js';
import { newInferRequest } from '../new-request.js';
import { MISSING, TEI_MODEL_PATH } from './api.js';
import { modelInfo } from './info.js';
import { type Parsed, parseAny, parseDecode, parseEmbed, parseSimilarity, parseTokenize } from './parse.js';
import { writeAny, writeEmbeddings, writeSimilarities, writeTexts, writeTokens } from './render.js';
import { unnamedModel } from './served-model.js';

/**
 * text-embeddings-inference's addresses, for the model of the setting `teiModel`, and for any other under
 * `/models/{model}[/versions/{version}]`. At `POST /` and at the
 * model's own address Hugging Face's client asks for embeddings and similarities: it posts to the URL it is given.
 */
export function teiRouter(parts: DoorParts): Router {
  const { clock, directory, bodies, answer, settings, keyed, faults } = parts;
  const router = Router({ caseSensitive: true });

  const modelOf = (req: Request, res: Response): ModelDescription => {
    const { model: name, version } = req.params as { model?: string; version?: string };
    const model =
      name === undefined ? unnamedModel(directory, settings) : requireTexts(directory.resolve(name, version));
    contextOf(res).model = model.name;
    return model;
  };
  const inferring =
    <Asked>(
      parse: (model: ModelDescription, value: unknown) => Parsed<Asked>,
      write: AnswerWriter<Asked>,
    ): RequestHandler =>
    async (req, res) => {
      const model = modelOf(req, res);
      requireJsonType(req);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      const { parsed, asked } = parse(model, parseStrictJson(body, settings.maxJsonDepth));
      const request = newInferRequest(contextOf(res), req.headers, model, parsed, settings);
      await answer(req, res, write, { body, request, asked });
    };
  const health: RequestHandler = (req, res) => {
    const [fault] = faults();
    if (fault !== undefined || !directory.isServed(modelOf(req, res))) {
      throw new MillraceError('no_worker', fault && `This gateway cannot serve: ${fault}.`);
    }
    const timings = timingsOf({}, contextOf(res).received, clock.now());
    respond(res, { status: 200, contentType: 'text/plain', body: '' }, timings);
  };
  /** Asked without a key: it must not tell the models' names, as an error that looks for one does. */
  const openHealth: RequestHandler = (req, res, next) => {
    try {
      health(req, res, next);
    } catch {
      throw new MillraceError('no_worker');
    }
  };

  const any = inferring(parseAny, writeAny);
  router
    .route('/')
    // A person's browser gets another answer than this door's.
    .get((_req, _res, next) => next('route'))
    .all(keyed)
    .post(any)
    .all(methodNotAllowed('GET', 'POST'));
  router.route(TEI_MODEL_PATH).all(keyed).post(any).all(methodNotAllowed('POST'));
  for (const base of ['', TEI_MODEL_PATH]) {
    const post = (path: string, handler: RequestHandler): void => {
      router.route(`${base}/${path}`).all(keyed).post(handler).all(methodNotAllowed('POST'));
    };
    post('embed', inferring(parseEmbed, writeEmbeddings));
    post('similarity', inferring(parseSimilarity, writeSimilarities));
    post('tokenize', inferring(parseTokenize, writeTokens));
    post('decode', inferring(parseDecode, writeTexts));
    for (const [path, reason] of Object.entries(MISSING)) {
      post(path, (req, res) => {
        modelOf(req, res);
        throw new MillraceError('unsupported', reason);
      });
    }
    router
      .route(`${base}/info`)
      .all(keyed)
      .get((req, res) => respondJson(res, 200, modelInfo(modelOf(req, res), settings), clock.now()))
      .all(methodNotAllowed('GET'));
  }
  router.route('/health').get(openHealth).all(methodNotAllowed('GET'));
  router.route(`${TEI_MODEL_PATH}/health`).all(keyed).get(health).all(methodNotAllowed('GET'));
  return router;
}
