import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from '@20minutes/s3rver';

/** The key pair that the server knows, and quiet about what a later release of the client will need. */
const ENVIRONMENT = {
  AWS_ACCESS_KEY_ID: 'S3RVER',
  AWS_SECRET_ACCESS_KEY: 'S3RVER',
  AWS_REGION: 'us-east-1',
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
};

/** A server that speaks S3, with its objects in a folder of its own. */
export class S3Server {
  static readonly BUCKET = 'millrace-test';
  readonly endpoint: string;
  readonly #server: S3rver;
  readonly #folder: string;

  private constructor(server: S3rver, folder: string, port: number) {
    this.#server = server;
    this.#folder = folder;
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<S3Server> {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-s3-'));
    const server = new S3rver({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory: folder,
      vhostBuckets: false,
      // It reckons otherwise than AWS where a path ends in "/", as the client writes a bucket's.
      allowMismatchedSignatures: true,
      configureBuckets: [{ name: S3Server.BUCKET }],
    });
    const { port } = await server.run();
    return new S3Server(server, folder, port);
  }

  async stop(): Promise<void> {
    this.#server.httpServer.closeAllConnections();
    await this.#server.close();
    await rm(this.#folder, { recursive: true });
  }
}

/** Sets the environment in which AWS's clients find the server's key pair. @returns what sets it back. */
export function useCredentials(): () => void {
  const before = Object.keys(ENVIRONMENT).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, ENVIRONMENT);
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
}
