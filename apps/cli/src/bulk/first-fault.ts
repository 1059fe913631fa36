import { open } from 'node:fs/promises';

/** Enough for a line that failed: it holds an error, no vectors. */
const MOST_BYTES = 64 * 1024;

/** The first line of an error file in words; undefined where it can't be read. */
export async function firstFault(path: string): Promise<string | undefined> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_BYTES), 0, MOST_BYTES, 0);
    const [first = ''] = buffer.toString('utf8', 0, bytesRead).split('\n', 1);
    const { line, error, response } = JSON.parse(first) as {
      line: number;
      error: { message: string } | null;
      response: { status_code: number; body: unknown } | null;
    };
    return `line ${line}: ${error?.message ?? JSON.stringify(response?.body)}`;
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}
