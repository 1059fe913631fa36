import { expect } from 'chai';
import { apiErrorOf } from './api-error.js';

function errorOf(status: number, body: unknown, headers: Record<string, string> = {}) {
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
  return apiErrorOf(new Response(null, { status, headers, statusText: 'Bad Gateway' }), bytes.buffer, 0);
}

describe('the error of an answer', () => {
  it('is read from problem details, with the items at fault', () => {
    const items = [
      { index: 1, code: 'text_too_long', message: 'Too long.' },
      { index: 5, code: 'text_too_long', message: 'Too long.' },
    ];
    const problem = {
      title: 'The text has more tokens than the model takes.',
      detail: 'Too long.',
      code: 'text_too_long',
      field: 'inputs[1]',
      index: 1,
      errors: items,
      requestId: 'in the body',
    };
    const error = errorOf(400, problem);
    expect(error.message).to.equal('Too long.');
    expect(error).to.include({
      name: 'MillraceApiError',
      status: 400,
      code: 'text_too_long',
      field: 'inputs[1]',
      index: 1,
      requestId: 'in the body',
      retryAfterMs: undefined,
    });
    expect(error.items).to.deep.equal(items);
  });

  it('is read from the Open Inference Protocol’s one sentence', () => {
    const error = errorOf(404, { error: 'No such model.' }, { 'x-request-id': 'r-1' });
    expect(error.message).to.equal('No such model.');
    expect(error).to.include({ status: 404, code: undefined, field: undefined, requestId: 'r-1' });
    expect(error.items).to.deep.equal([]);
    const echoed = { 'x-request-id': 'mine', 'x-millrace-request-id': 'r-2' };
    expect(errorOf(404, { error: 'No.' }, echoed)).to.have.property('requestId', 'r-2');
  });

  it('is read from OpenAI’s error object', () => {
    const said = {
      message: 'It is empty.',
      type: 'invalid_request_error',
      param: 'input',
      code: 'invalid_input',
    };
    const error = errorOf(400, { error: said });
    expect(error.message).to.equal('It is empty.');
    expect(error).to.include({ code: 'invalid_input', field: 'input' });
    expect(errorOf(400, { error: { ...said, param: null, code: null } })).to.include({
      code: undefined,
      field: undefined,
    });
  });

  it('says the status where somebody else has answered', () => {
    for (const body of ['<html>Bad Gateway</html>', '', '[]', 'null', '{"other":1}']) {
      const error = errorOf(502, body, { 'retry-after': '4' });
      expect(error.message, body).to.equal('The server answered 502 Bad Gateway.');
      expect(error).to.include({ status: 502, retryAfterMs: 4000 });
    }
  });
});
