import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

const LOCAL_HEADER = 30;
const CENTRAL_HEADER = 46;

/** A zip of uncompressed members. */
export function zipOf(members: Record<string, Uint8Array>): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(members)) {
    const path = Buffer.from(name);
    const sizes = Buffer.alloc(12);
    sizes.writeUInt32LE(crc32(content), 0);
    sizes.writeUInt32LE(content.length, 4);
    sizes.writeUInt32LE(content.length, 8);
    const local = Buffer.alloc(LOCAL_HEADER);
    local.write('PK\x03\x04', 'latin1');
    local.writeUInt16LE(20, 4);
    sizes.copy(local, 14);
    local.writeUInt16LE(path.length, 26);
    const central = Buffer.alloc(CENTRAL_HEADER);
    central.write('PK\x01\x02', 'latin1');
    central.writeUInt16LE(20, 4);
    central.writeUInt16LE(20, 6);
    sizes.copy(central, 16);
    central.writeUInt16LE(path.length, 28);
    central.writeUInt32LE(offset, 42);
    locals.push(local, path, Buffer.from(content));
    centrals.push(central, path);
    offset += local.length + path.length + content.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(Object.keys(members).length, 8);
  end.writeUInt16LE(Object.keys(members).length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

/** Writes a wheel that pip takes, `<package>-1.0-py3-none-any.whl`, into a folder. */
export async function writeWheel(
  dir: string,
  packageName: string,
  members: Record<string, Uint8Array>,
): Promise<string> {
  const info = `${packageName}-1.0.dist-info`;
  const text = (lines: string[]) => Buffer.from(`${lines.join('\n')}\n`);
  const path = join(dir, `${packageName}-1.0-py3-none-any.whl`);
  await mkdir(dir, { recursive: true });
  await writeFile(
    path,
    zipOf({
      ...members,
      [`${info}/METADATA`]: text(['Metadata-Version: 2.1', `Name: ${packageName}`, 'Version: 1.0']),
      [`${info}/WHEEL`]: text([
        'Wheel-Version: 1.0',
        'Generator: test',
        'Root-Is-Purelib: true',
        'Tag: py3-none-any',
      ]),
      [`${info}/RECORD`]: text([]),
    }),
  );
  return path;
}

/** Puts a `pip`, or what else may bring one, that is this shell script into a folder, for PATH. `$dest` is where a wheel is expected. */
export async function writePip(dir: string, script: string, name = 'pip'): Promise<void> {
  const path = join(dir, name);
  const dest = `dest=$(printf '%s\\n' "$@" | sed -n 's/^--dest=//p')`;
  await mkdir(dir, { recursive: true });
  await writeFile(path, `#!/bin/sh\n${dest}\n${script}\n`);
  await chmod(path, 0o755);
}
