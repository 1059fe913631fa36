/** A BYTES tensor's data: of each element its length (uint32, little-endian), then its bytes. */
export function bytesElements(elements: readonly unknown[]): Buffer {
  return Buffer.concat(
    elements.flatMap((element) => {
      const bytes = Buffer.isBuffer(element) ? element : Buffer.from(String(element));
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.byteLength);
      return [length, bytes];
    }),
  );
}

/** The numbers of an FP32 tensor's data, little-endian. */
export function floatsOf(bytes: Buffer): number[] {
  return Array.from({ length: bytes.byteLength / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}
