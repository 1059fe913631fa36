import { MillraceError, type RedisClock, type Settings } from '@millrace/shared';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { ApiKeys } from '../admission/api-keys.js';
import { readBody } from '../http/body.js';
import { contextOf } from '../http/context.js';
import { methodNotAllowed } from '../http/errors.js';
import { type Answer, respond, timingsOf } from '../http/respond.js';
import { pageHeaders } from '../http/security-headers.js';
import { LoginAttempts } from './attempts.js';
import { DASHBOARD_PATH, disabledPage, ICON, ICON_PATH, loginPage } from './pages.js';
import { REQUESTS_PATH } from './requests/links.js';
import type { FormGuard, Show } from './requests/router.js';
import { Sessions } from './sessions.js';

const COOKIE = 'millrace_session';
const HTML = 'text/html; charset=utf-8';
const MAX_FORM_BYTES = 4096;
const ICON_HEADERS = ['Cache-Control', 'max-age=86400'];

export type DashboardSettings = Pick<Settings, 'dashboardPassword' | 'dashboardAdmin'>;

/** What is behind the login. */
export interface DashboardPages {
  board: RequestHandler;
  requests(guard: FormGuard, show: Show): RequestHandler;
}

/**
 * `/dashboard`: a login, by the dashboard's password or by the name and key of an API key of the scope
 * `admin`, and behind it `pages`. With neither password nor such a key it is off.
 */
export function dashboardRouter(
  clock: RedisClock,
  settings: DashboardSettings,
  keys: ApiKeys,
  pages: DashboardPages,
): Router {
  const router = Router();
  router.use(pageHeaders(), (_req, res, next) => {
    contextOf(res).securityHeaders = [];
    next();
  });
  const answer = (res: Response, whole: Answer): void =>
    respond(res, whole, timingsOf({}, contextOf(res).received, clock.now()));
  const show: Show = (res, status, html) => answer(res, { status, contentType: HTML, body: html });
  router.get(ICON_PATH.slice(DASHBOARD_PATH.length), (_req, res) =>
    answer(res, { status: 200, contentType: 'image/svg+xml', body: ICON, headers: ICON_HEADERS }),
  );
  if (settings.dashboardPassword === '' && !keys.hasScope('admin')) {
    router.use((_req, res) => show(res, 404, disabledPage()));
    return router;
  }
  const sessions = new Sessions(settings.dashboardPassword, keys);
  const attempts = new LoginAttempts();

  router
    .route('/login')
    .get((_req, res) => show(res, 200, loginPage()))
    .post(async (req, res) => {
      const form = new URLSearchParams((await readBody(req, MAX_FORM_BYTES)).toString());
      // Asked and counted in one step, after the body is here: logins that are sent side by side count too.
      const address = req.socket.remoteAddress ?? '';
      const waitSeconds = attempts.waitSeconds(address);
      if (waitSeconds > 0) {
        res.setHeader('Retry-After', waitSeconds);
        show(res, 429, loginPage('Too many failed attempts. Try again in a minute.'));
        return;
      }
      if (!sessions.accepts(form.get('user') ?? '', form.get('password') ?? '')) {
        attempts.failed(address);
        show(res, 401, loginPage('User or password is wrong.'));
        return;
      }
      attempts.succeeded(address);
      setCookie(res, sessions.begin(), sessions.maxAgeSeconds);
      res.redirect(303, DASHBOARD_PATH);
    })
    .all(methodNotAllowed('GET', 'POST'));

  router.all('/logout', (req, res) => {
    sessions.end(cookieOf(req));
    setCookie(res, '', 0);
    res.redirect(303, `${DASHBOARD_PATH}/login`);
  });

  router.use((req, res, next) => {
    if (sessions.isValid(cookieOf(req))) next();
    else if (req.path.startsWith('/api'))
      throw new MillraceError('unauthorized', 'Log in to the dashboard first.');
    else res.redirect(303, `${DASHBOARD_PATH}/login`);
  });
  if (!settings.dashboardAdmin) {
    router.use((req, _res, next) => {
      // bull-board refuses changes to a read-only queue by itself; this holds for whatever it adds later.
      if (req.method === 'GET' || req.method === 'HEAD') next();
      else
        throw new MillraceError(
          'forbidden',
          'The dashboard only shows. Set MILLRACE_DASHBOARD_ADMIN to change.',
        );
    });
  }
  const guard: FormGuard = {
    tokenOf: (req) => sessions.formToken(cookieOf(req)),
    isRight: (req, token) => sessions.isFormToken(cookieOf(req), token),
  };
  router.use(REQUESTS_PATH.slice(DASHBOARD_PATH.length), pages.requests(guard, show));
  router.use(pages.board);
  return router;
}

function setCookie(res: Response, value: string, maxAgeSeconds: number): void {
  const attributes = `Path=${DASHBOARD_PATH}; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}`;
  res.setHeader('Set-Cookie', `${COOKIE}=${value}; ${attributes}`);
}

function cookieOf(req: Request): string | undefined {
  for (const pair of req.headers.cookie?.split(';') ?? []) {
    const [name, value] = pair.trim().split('=');
    if (name === COOKIE) return value;
  }
  return undefined;
}
