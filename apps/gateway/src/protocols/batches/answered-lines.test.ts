import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { BatchesDoor, expectAll } from '../../test-support/batches-door.js';
import { embeddingOf } from '../../test-support/stand-in-worker.js';

describe('batches, line by line', function () {
  this.timeout(60_000);
  const door = new BatchesDoor();
  const { alice, as, embedLine, many, run, tensors, texts } = door;
  before(() => door.open());
  after(() => door.close());

  it('answers each line by the door that it is for, in the order of the input', async () => {
    const { batch, output, errors } = await run(
      [
        embedLine('a', 'one'),
        JSON.stringify({
          custom_id: 'b',
          method: 'POST',
          url: `/v1/models/${texts}/predict`,
          body: { inputs: ['two', 'three'] },
        }),
        JSON.stringify({
          custom_id: 'c',
          url: `/v2/models/${tensors}/infer`,
          body: { inputs: [{ name: 'int64', datatype: 'INT64', shape: [1, 1], data: [7] }] },
        }),
        JSON.stringify({ custom_id: 'd', url: `/models/${texts}/embed`, body: { inputs: 'four' } }),
        JSON.stringify({ custom_id: 'e', body: { model: texts, input: 'five', encoding_format: 'base64' } }),
      ].join('\n'),
    );
    expect(errors).to.deep.equal([]);
    expect(batch.status).to.equal('completed');
    expect(batch.request_counts).to.deep.equal({ total: 5, completed: 5, failed: 0 });
    expect(output.map(({ custom_id, line }) => [custom_id, line])).to.deep.equal([
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['d', 4],
      ['e', 5],
    ]);
    const bodies = output.map(({ response }) => response?.body as Record<string, unknown>);
    expect(bodies[0]).to.deep.include({ object: 'list', model: texts });
    expect(bodies[0]?.usage).to.deep.equal({ prompt_tokens: 3, total_tokens: 3 });
    expect(bodies[1]?.outputs).to.have.length(2);
    expect(bodies[2]?.outputs).to.have.nested.property('[0].datatype', 'INT64');
    const { data } = bodies[4] as { data: [{ embedding: string }] };
    const floats = Buffer.from(data[0].embedding, 'base64');
    expect(floats.readFloatLE(0)).to.equal(Math.fround(embeddingOf('five')[0] as number));
    expect(new Set(output.map(({ id }) => id)).size).to.equal(5);
  });

  it('keeps the digits of 64-bit integers', async () => {
    const line = `{"custom_id":"big","url":"/v2/models/${tensors}/infer","body":{"inputs":[{"name":"int64","datatype":"INT64","shape":[1,1],"data":[9007199254740993]}]}}`;
    const { batch } = await run(line);
    const response = await fetch(`${door.gateway.url}/v1/files/${batch.output_file_id}/content`, {
      headers: as(alice),
    });
    expect(await response.text()).to.contain('9007199254740993');
  });

  it('tells the error of each line that has one and does the rest', async () => {
    const { batch, output, errors } = await run(
      [
        embedLine('good', 'one'),
        '{"custom_id":',
        '',
        `{"custom_id":"long","body":{"input":"${'x'.repeat(20_000)}"}}`,
        JSON.stringify({ custom_id: 'nowhere', url: '/v1/chat/completions', body: {} }),
        JSON.stringify({ custom_id: 'misspelt', boddy: {}, body: {} }),
        JSON.stringify({ custom_id: 'no model', body: { model: 'nobody', input: 'x' } }),
        JSON.stringify({ custom_id: 'no input', body: { model: texts } }),
        embedLine('failing', 'bad'),
        JSON.stringify({
          custom_id: 'binary',
          url: `/v2/models/${tensors}/infer`,
          body: {
            inputs: [{ name: 'int8', datatype: 'INT8', shape: [1, 1], data: [1] }],
            parameters: { binary_data_output: true },
          },
        }),
        '[1, 2]',
        embedLine('also good', 'two'),
      ].join('\n'),
    );
    expect(batch.status).to.equal('completed');
    expect(batch.request_counts).to.deep.equal({ total: 12, completed: 2, failed: 10 });
    expect(output.map(({ custom_id }) => custom_id)).to.deep.equal(['good', 'also good']);
    const told = errors.map(({ line, custom_id, response, error }) => [
      line,
      custom_id,
      response ? response.status_code : error?.code,
    ]);
    expect(told).to.deep.equal([
      [2, null, 'invalid_json'],
      [3, null, 'invalid_json'],
      [4, null, 'body_too_large'],
      [5, 'nowhere', 'invalid_input'],
      [6, 'misspelt', 'invalid_input'],
      [7, 'no model', 404],
      [8, 'no input', 400],
      [9, 'failing', 500],
      [10, 'binary', 501],
      [11, null, 'invalid_input'],
    ]);
    expect(errors[4]?.error?.message).to.match(/^boddy /);
    expect(errors[6]?.response?.body).to.have.nested.property('error.param', 'input');
  });

  it('takes a file in gzip', async () => {
    const { batch, output } = await run(gzipSync(many(200)));
    expect(batch.request_counts).to.deep.equal({ total: 200, completed: 200, failed: 0 });
    expectAll(output, 200);
  });

  it('fails with the reason where the file has no lines, or is broken gzip', async () => {
    const empty = await run('');
    expect(empty.batch.status).to.equal('failed');
    expect(empty.batch.errors?.data.map(({ code }) => code)).to.deep.equal(['empty_file']);
    const broken = await run(gzipSync(many(2000)).subarray(0, 2000));
    expect(broken.batch.status).to.equal('failed');
    expect(broken.batch.errors?.data.map(({ code }) => code)).to.deep.equal(['invalid_encoding']);
  });
});
