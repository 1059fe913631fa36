import { status } from '@grpc/grpc-js';
import { ERRORS, type ErrorCode, MillraceError } from '@millrace/shared';
import { expect } from 'chai';
import { RequestContext } from '../../http/context.js';
import { endOf, errorOfLibrary, grpcErrors } from './status.js';

const context = new RequestContext(0, grpcErrors, undefined);
const codes = Object.keys(ERRORS) as ErrorCode[];

describe('the statuses of gRPC', () => {
  it('has one for every error, internal only for what is our fault', () => {
    for (const code of codes) {
      const end = endOf(context, new MillraceError(code));
      const internal = ERRORS[code].status === 500;
      expect(end.code === status.INTERNAL, code).to.equal(internal);
      expect(end.details).not.to.equal('');
      expect(end.metadata.get('x-request-id')).to.deep.equal([context.requestId]);
    }
  });

  it('says when to try again exactly where HTTP does', () => {
    for (const code of codes) {
      const retry = endOf(context, new MillraceError(code, undefined, { retryAfterSeconds: 7 })).metadata.get(
        'retry-after',
      );
      expect(retry, code).to.deep.equal([429, 503].includes(ERRORS[code].status) ? ['7'] : []);
    }
  });

  it('speaks of gRPC where the table of errors speaks of HTTP', () => {
    for (const code of ['unauthorized', 'deadline_exceeded'] as const) {
      const { details } = endOf(context, new MillraceError(code));
      expect(details).not.to.match(/header|Prefer|waitMs/);
    }
  });

  it("echoes the client's id beside ours", () => {
    const { metadata } = endOf(new RequestContext(0, grpcErrors, 'theirs'));
    expect(metadata.get('x-request-id')).to.deep.equal(['theirs']);
    expect(metadata.get('x-millrace-request-id')).to.have.length(1);
  });

  it('cuts a message that would not fit into a header, whatever it is made of', () => {
    for (const text of [
      'x'.repeat(10_000),
      '名'.repeat(3000),
      '😀'.repeat(2000),
      'a\ud83d',
      '\ud83d'.repeat(5000),
    ]) {
      const { details } = endOf(context, new MillraceError('invalid_input', text));
      expect(encodeURI(details).length).to.be.within(1, 4096);
    }
  });

  it('reads the ends that the library gives a call', () => {
    const of = (code: status, details = '') => errorOfLibrary({ code, details }, 10).code;
    expect(of(status.RESOURCE_EXHAUSTED)).to.equal('body_too_large');
    expect(of(status.DEADLINE_EXCEEDED)).to.equal('deadline_exceeded');
    expect(of(status.UNIMPLEMENTED)).to.equal('unsupported_media_type');
    expect(of(status.INTERNAL, 'Failed to decompress message')).to.equal('invalid_input');
    expect(of(status.INTERNAL, 'Invalid grpc-timeout value "x"')).to.equal('invalid_input');
    expect(of(status.INTERNAL, 'Error writing message')).to.equal('internal');
  });
});
