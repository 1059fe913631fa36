import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { until } from '../test-support/redis.js';
import { S3Server, useCredentials } from '../test-support/s3-server.js';
import { codeOf, listed, pieces, storeConformance } from '../test-support/store-conformance.js';
import { S3Store } from './s3-store.js';

const MIB = 1024 * 1024;
const PART_BYTES = 5 * MIB;

describe('files in S3', () => {
  let server: S3Server;
  let store: S3Store;
  let setBack: () => void;
  const place = {
    bucket: S3Server.BUCKET,
    prefix: 'some/where/',
    endpoint: '',
    maxObjectBytes: 1024 * MIB,
    pageKeys: 10,
  };

  before(async () => {
    setBack = useCredentials();
    server = await S3Server.start();
    store = new S3Store({ ...place, endpoint: server.endpoint });
  });
  after(async () => {
    await store?.close();
    await server?.stop();
    setBack();
  });

  storeConformance(() => store);

  it('lie under their prefix, and see nothing beside it', async () => {
    const whole = new S3Store({ ...place, prefix: '', endpoint: server.endpoint });
    await whole.put('files/beside', pieces(Buffer.from('x')));
    await store.put('files/inside', pieces(Buffer.from('x')));
    expect((await listed(store)).map(({ key }) => key)).to.deep.equal(['files/inside']);
    expect((await listed(whole)).map(({ key }) => key)).to.have.members([
      'files/beside',
      'some/where/files/inside',
    ]);
    await whole.remove(['files/beside', 'some/where/files/inside']);
    await whole.close();
  });

  it('are unavailable where the server or the bucket is not there', async () => {
    const none = new S3Store({ ...place, endpoint: 'http://127.0.0.1:1' });
    const noBucket = new S3Store({ ...place, bucket: 'no-such-bucket', endpoint: server.endpoint });
    for (const away of [none, noBucket]) {
      expect(await codeOf(away.put('files/a', pieces(Buffer.from('x'))))).to.equal('storage_unavailable');
      expect(await codeOf(away.read('files/a'))).to.equal('storage_unavailable');
      expect(await codeOf(listed(away))).to.equal('storage_unavailable');
      await away.close();
    }
  });

  /** A store whose server answers as it is told. */
  async function beside(answer: RequestListener): Promise<{ odd: S3Store; close(): Promise<void> }> {
    const http: Server = createServer(answer);
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    const { port } = http.address() as AddressInfo;
    const odd = new S3Store({ ...place, endpoint: `http://127.0.0.1:${port}` });
    return {
      odd,
      close: async () => {
        http.closeAllConnections();
        await odd.close();
        await new Promise((resolve) => http.close(resolve));
      },
    };
  }

  it('are listed page by page', async () => {
    const asked: (string | null)[] = [];
    const { odd, close } = await beside((req, res) => {
      const query = new URL(req.url ?? '', 'http://x').searchParams;
      asked.push(query.get('continuation-token'));
      const [key, next] = asked.length === 1 ? ['a', 'more/of it='] : ['b', ''];
      res.writeHead(200, { 'content-type': 'application/xml' });
      res.end(
        `<ListBucketResult><IsTruncated>${next !== ''}</IsTruncated>` +
          (next && `<NextContinuationToken>${next}</NextContinuationToken>`) +
          `<Contents><Key>some/where/files/${key}</Key><Size>7</Size>` +
          '<LastModified>2026-11-30T12:00:00.000Z</LastModified></Contents></ListBucketResult>',
      );
    });
    const modifiedAt = Date.parse('2026-11-30T12:00:00Z');
    expect(await listed(odd, 'files/')).to.deep.equal([
      { key: 'files/a', bytes: 7, modifiedAt },
      { key: 'files/b', bytes: 7, modifiedAt },
    ]);
    expect(asked).to.deep.equal([null, 'more/of it=']);
    await close();
  });

  it('take back the parts of what breaks off', async () => {
    const asked: string[] = [];
    const { odd, close } = await beside((req, res) => {
      asked.push(`${req.method} ${req.url?.replace(/^.*\?/, '')}`);
      req.resume().on('end', () => {
        if (req.method === 'DELETE') res.writeHead(204).end();
        else if (req.method === 'PUT') res.writeHead(200, { etag: '"1"' }).end();
        else {
          res.writeHead(200, { 'content-type': 'application/xml' });
          res.end('<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>');
        }
      });
    });
    async function* content(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(3 * PART_BYTES);
      throw new Error('the client went away');
    }
    const fault = await odd.put('files/a', content()).catch((error: Error) => error.message);
    expect(fault).to.equal('the client went away');
    expect(asked.at(-1)).to.match(/^DELETE .*uploadId=u/);
    await close();
  });

  it('tell that the server has no room', async () => {
    const { odd, close } = await beside((req, res) => {
      req.resume().on('end', () => {
        res.writeHead(507, { 'content-type': 'application/xml' });
        res.end('<Error><Code>XMinioStorageFull</Code><Message>Full.</Message></Error>');
      });
    });
    expect(await codeOf(odd.put('files/a', pieces(Buffer.from('x'))))).to.equal('storage_full');
    await close();
  });

  it('take no more of what comes than two parts while the server rests', async () => {
    let parts = 0;
    const { odd, close } = await beside((req, res) => {
      if (req.method === 'POST') {
        res.writeHead(200, { 'content-type': 'application/xml' });
        res.end('<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>');
      } else if (req.method === 'PUT') parts += 1;
      else res.writeHead(204).end();
    });
    let taken = 0;
    async function* content(): AsyncGenerator<Uint8Array> {
      while (taken < 40 * PART_BYTES) {
        taken += MIB;
        yield Buffer.alloc(MIB);
      }
    }
    const putting = codeOf(odd.put('files/a', content()));
    await until('both parts are under way', () => parts === 2);
    // Without a bound it would take all of it in less.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(taken).to.be.at.most(3 * PART_BYTES + 2 * MIB);
    await close();
    expect(await putting).to.equal('storage_unavailable');
  });
});
