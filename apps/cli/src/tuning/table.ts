/** Lines of a plain table: the first row is the heading; columns of numbers are set to the right. */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) =>
    Math.max(...rows.map((row) => row[i]?.length ?? 0)),
  );
  const isNumeric = widths.map((_, i) => rows.slice(1).every((row) => /^[-+\d]|^$/.test(row[i] ?? '')));
  const line = (row: readonly string[]): string =>
    widths
      .map((width, i) => (isNumeric[i] ? (row[i] ?? '').padStart(width) : (row[i] ?? '').padEnd(width)))
      .join('  ')
      .trimEnd();
  const [heading = [], ...body] = rows;
  return [line(heading), widths.map((width) => '-'.repeat(width)).join('  '), ...body.map(line)];
}

export const percent = (share: number, digits = 1): string => `${(share * 100).toFixed(digits)}%`;
