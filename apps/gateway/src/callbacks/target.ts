import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { MillraceError, type Settings } from '@millrace/shared';
import ipaddr from 'ipaddr.js';

export const CALLBACK_HEADER = 'Millrace-Callback';
const MOST_CHARACTERS = 2048;
/** All that is given out of IPv6 so far (RFC 4291, section 2.4). */
const IPV6_INTERNET = ipaddr.IPv6.parseCIDR('2000::/3');

export type TargetLimits = Pick<
  Settings,
  'callbackSecret' | 'callbackHosts' | 'callbackAllowHttp' | 'callbackAllowPrivate'
>;

/**
 * Reads the address that is to be told how a request ended.
 * @throws MillraceError `unsupported` while there is no secret to sign with; `invalid_input` for what is no address
 * that may be called.
 */
export function readTarget(value: string, limits: TargetLimits): string {
  if (limits.callbackSecret === '') {
    throw new MillraceError(
      'unsupported',
      `The header ${CALLBACK_HEADER} is not taken here: whoever runs this server has set no MILLRACE_CALLBACK_SECRET to sign callbacks with.`,
      { field: CALLBACK_HEADER },
    );
  }
  const url = value.length <= MOST_CHARACTERS && URL.canParse(value) ? new URL(value) : undefined;
  if (!url) throw invalid(`must be a URL of at most ${MOST_CHARACTERS} characters`);
  const { callbackAllowHttp } = limits;
  const plain = url.protocol === 'http:' && callbackAllowHttp;
  if (url.protocol !== 'https:' && !plain) {
    throw invalid(`must begin with https://${callbackAllowHttp ? ' or http://' : ''}`);
  }
  if (url.username !== '' || url.password !== '') throw invalid('must not hold a user or password');
  const { callbackHosts } = limits;
  if (callbackHosts.length > 0 && !callbackHosts.includes(url.hostname)) {
    throw invalid(`must be at one of ${callbackHosts.join(', ')}`);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (ipaddr.isValid(host) && !mayBeCalled(host, limits)) throw invalid('must not be a private address');
  return url.href;
}

/** Whether an IP address is one of the open internet, or private ones are allowed. */
function mayBeCalled(address: string, { callbackAllowPrivate }: TargetLimits): boolean {
  if (callbackAllowPrivate) return true;
  const ip = ipaddr.process(address);
  if (ip.range() !== 'unicast') return false;
  // Beside what has another use IPv6 has room without any, such as `::10.0.0.1`, which was once 10.0.0.1.
  return !(ip instanceof ipaddr.IPv6) || ip.match(IPV6_INTERNET);
}

/**
 * Resolves a name to addresses that may be called, in the very moment of the connect: a name that was harmless when
 * it was given may lead inward now.
 */
export function guardedLookup(limits: TargetLimits): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = error ? [] : addresses.filter(({ address }) => mayBeCalled(address, limits));
      const [first] = allowed;
      if (error) callback(error, '', 0);
      else if (!first) callback(new Error(`${hostname} leads to a private address`), '', 0);
      else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function invalid(fault: string): MillraceError {
  return new MillraceError('invalid_input', `The header ${CALLBACK_HEADER} ${fault}.`, {
    field: CALLBACK_HEADER,
  });
}
