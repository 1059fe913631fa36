import type { RequestHandler } from 'express';
import helmet from 'helmet';

/**
 * For answers that are data, never a page. Written out, name and value in turn: setting them one by one
 * costs every request more than routing it does. TLS ends before the gateway, so HSTS is not ours to say.
 */
export const API_HEADERS: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none';frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy',
  'same-origin',
  'Referrer-Policy',
  'no-referrer',
  'X-Content-Type-Options',
  'nosniff',
  'X-Frame-Options',
  'DENY',
];

/**
 * For the dashboard, a page of its own scripts. It sets styles from scripts, hence inline styles; the fonts
 * it would fetch from elsewhere stay blocked and its fallbacks are used.
 */
export function pageHeaders(): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        objectSrc: ["'none'"],
        baseUri: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
    },
    strictTransportSecurity: false,
    xFrameOptions: { action: 'deny' },
  });
}
