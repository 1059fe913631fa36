export const FRAME_HEAD = 9;
const WINDOW_UPDATE = 8;

/** Codes of the letters that grpc-status needs. */
const CODES: Readonly<Record<string, string>> = {
  '-': '010110',
  a: '00011',
  c: '00100',
  g: '100110',
  p: '101011',
  r: '101100',
  s: '01000',
  t: '01001',
  u: '101101',
};

/** One frame of HTTP/2: RFC 9113, 4.1. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array | number[]): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
}

export function setting(id: number, value: number): number[] {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return [...bytes];
}

export function windowUpdate(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(WINDOW_UPDATE, 0, 0, payload);
}

/** A header that enters no table; its name by its number in the static one, or itself. */
export function literal(name: number | string, value: string): Buffer {
  const named =
    typeof name === 'string' ? [Buffer.from([0]), string(name)] : [Buffer.from(prefixed(name, 4))];
  return Buffer.concat([...named, string(value)]);
}

/** A string as it is. */
export function string(text: string): Buffer {
  return Buffer.concat([Buffer.from(prefixed(text.length, 7)), Buffer.from(text, 'latin1')]);
}

/** An integer behind a prefix of so many bits: RFC 7541, 5.1. */
function prefixed(value: number, bits: number): number[] {
  const most = 2 ** bits - 1;
  if (value < most) return [value];
  const bytes = [most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return [...bytes, left];
}

/** A string in the Huffman code of RFC 7541, appendix B. */
export function huffman(text: string): Buffer {
  const bits = [...text].map((letter) => CODES[letter]).join('');
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
  const bytes = padded.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? [];
  return Buffer.from([0x80 + bytes.length, ...bytes]);
}
