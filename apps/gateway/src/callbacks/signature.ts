import { createHmac } from 'node:crypto';

/**
 * The headers of a callback, as Standard Webhooks 1.0 has them: the receiver computes
 * HMAC-SHA256(secret, `${id}.${timestamp}.${body}`) and compares, and refuses a timestamp (seconds since 1970) that
 * is more than some minutes off. A repeat has the same id.
 */
export function signedHeaders(
  secret: string,
  id: string,
  timestampSeconds: number,
  body: string,
): Record<string, string> {
  const signature = createHmac('sha256', keyOf(secret))
    .update(`${id}.${timestampSeconds}.${body}`)
    .digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${signature}`,
  };
}

/** `whsec_` and base64, as Standard Webhooks writes secrets; any other text stands for its own bytes. */
function keyOf(secret: string): Buffer {
  return secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
}
