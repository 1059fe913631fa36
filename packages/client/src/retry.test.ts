import { expect } from 'chai';
import { MillraceApiError, MillraceConnectionError } from './errors.js';
import { backoffMs, mayRetry, retryAfterMs } from './retry.js';

const NOW = Date.UTC(2030, 0, 1, 12, 0, 0);

describe('what may be tried again', () => {
  const api = (status: number) => new MillraceApiError('no', { status });

  it('is what was refused at the door, and never a fault of the request', () => {
    for (const status of [429, 503]) expect(mayRetry(api(status), false), String(status)).to.equal(true);
    for (const status of [400, 401, 404, 408, 413, 422, 500, 501]) {
      expect(mayRetry(api(status), true), String(status)).to.equal(false);
    }
  });

  it('is what may have run, only where running twice does no harm', () => {
    for (const status of [502, 504]) {
      expect(mayRetry(api(status), true)).to.equal(true);
      expect(mayRetry(api(status), false)).to.equal(false);
    }
    const broken = new MillraceConnectionError('no', false, undefined);
    expect(mayRetry(broken, true)).to.equal(true);
    expect(mayRetry(broken, false)).to.equal(false);
  });

  it('is what never reached the server', () => {
    expect(mayRetry(new MillraceConnectionError('no', true, undefined), false)).to.equal(true);
  });

  it('is nothing that went wrong in the caller', () => {
    expect(mayRetry(new TypeError('no'), true)).to.equal(false);
  });
});

describe('the wait before another try', () => {
  it('doubles from 250 ms to 8 s, and is anything from 0 to that', () => {
    const most = [1, 2, 3, 4, 5, 6, 7, 40].map((tries) => backoffMs(tries, undefined, 1));
    expect(most).to.deep.equal([250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
    expect(backoffMs(3, undefined, 0)).to.equal(0);
    expect(backoffMs(3, undefined, 0.25)).to.equal(250);
  });

  it('is never shorter than the server asked for, and up to 250 ms longer', () => {
    expect(backoffMs(1, 7000, 0)).to.equal(7000);
    expect(backoffMs(5, 7000, 0.5)).to.equal(7125);
  });
});

describe('Retry-After', () => {
  const read = (value: string, more: Record<string, string> = {}) =>
    retryAfterMs(new Headers({ 'retry-after': value, ...more }), NOW);

  it('is read as seconds', () => {
    expect(read('0')).to.equal(0);
    expect(read(' 3 ')).to.equal(3000);
    expect(read('0.5')).to.equal(500);
  });

  it('is read as an HTTP date, in all three of its forms', () => {
    expect(read('Tue, 01 Jan 2030 12:00:30 GMT')).to.equal(30_000);
    expect(read('Tuesday, 01-Jan-30 12:00:30 GMT')).to.equal(30_000);
    expect(read('Tue Jan  1 12:00:30 2030 GMT')).to.equal(30_000);
  });

  it('is counted from the date of the answer, where the clocks disagree', () => {
    const date = 'Tue, 01 Jan 2030 11:50:00 GMT';
    expect(read('Tue, 01 Jan 2030 11:50:05 GMT', { date })).to.equal(5000);
  });

  it('is 0 for a date that has passed', () => {
    expect(read('Mon, 31 Dec 2029 00:00:00 GMT')).to.equal(0);
  });

  it('is ignored where it is neither', () => {
    for (const value of ['', 'soon', '-3', '1.5.2', '12-13', '1e3', 'Tue, nonsense']) {
      expect(read(value), value).to.equal(undefined);
    }
    expect(retryAfterMs(new Headers(), NOW)).to.equal(undefined);
  });
});
