export interface Drawing {
  title: string;
  /** A line a size: fitted over batches, and the measured points on it. */
  series: { size: number; points: { batch: number; ms: number }[] }[];
  predictMs(batch: number, size: number): number;
}

const WIDTH = 760;
const HEIGHT = 480;
const MARGIN = { left: 64, right: 120, top: 48, bottom: 52 };
/** Told apart in print and by the color-blind (Okabe and Ito's palette). */
const COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'];
const STEPS = 48;

/** An SVG of a cost curve: milliseconds over items a batch, both logarithmic; measured as dots, fitted as lines. */
export function drawCurve({ title, series, predictMs }: Drawing): string {
  const all = series.flatMap(({ points }) => points);
  const x = axis(
    all.map(({ batch }) => batch),
    2,
    [MARGIN.left, WIDTH - MARGIN.right],
  );
  const y = axis(
    all.map(({ ms }) => ms),
    10,
    [HEIGHT - MARGIN.bottom, MARGIN.top],
  );
  const parts = [
    `<text x="${MARGIN.left}" y="26" font-size="16">${escaped(title)}</text>`,
    ...x.ticks.map(
      (tick) => `${rule(x.at(tick), 'x')}${label(x.at(tick), HEIGHT - MARGIN.bottom + 18, tick, 'middle')}`,
    ),
    ...y.ticks.map(
      (tick) => `${rule(y.at(tick), 'y')}${label(MARGIN.left - 8, y.at(tick) + 4, tick, 'end')}`,
    ),
    `<text x="${(MARGIN.left + WIDTH - MARGIN.right) / 2}" y="${HEIGHT - 12}" text-anchor="middle">items in a batch</text>`,
    `<text transform="translate(18 ${HEIGHT / 2}) rotate(-90)" text-anchor="middle">milliseconds a run</text>`,
  ];
  for (const [i, { size, points }] of series.entries()) {
    const color = COLORS[i % COLORS.length] ?? '#000000';
    const largest = Math.max(1, ...points.map(({ batch }) => batch));
    const line = Array.from({ length: STEPS + 1 }, (_, step) => largest ** (step / STEPS)).map(
      (batch) => `${x.at(batch).toFixed(1)},${y.at(predictMs(batch, size)).toFixed(1)}`,
    );
    parts.push(`<polyline points="${line.join(' ')}" fill="none" stroke="${color}" stroke-width="1.5"/>`);
    for (const { batch, ms } of points) {
      parts.push(
        `<circle cx="${x.at(batch).toFixed(1)}" cy="${y.at(ms).toFixed(1)}" r="4" fill="${color}"/>`,
      );
    }
    const key = MARGIN.top + 16 * i;
    parts.push(
      `<circle cx="${WIDTH - MARGIN.right + 16}" cy="${key}" r="4" fill="${color}"/>` +
        `<text x="${WIDTH - MARGIN.right + 26}" y="${key + 4}">size ${size}</text>`,
    );
  }
  parts.push(
    `<text x="${WIDTH - MARGIN.right + 10}" y="${MARGIN.top + 16 * series.length + 14}" font-size="11">` +
      `dots: measured</text><text x="${WIDTH - MARGIN.right + 10}" y="${MARGIN.top + 16 * series.length + 28}" ` +
      `font-size="11">lines: fitted</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

/** A logarithmic axis: powers of `base` as ticks, where values lie in pixels. */
function axis(values: readonly number[], base: number, [from, to]: readonly [number, number]) {
  const exponent = (value: number): number => Math.log(Math.max(value, 1e-6)) / Math.log(base);
  const low = Math.floor(Math.min(...values.map(exponent)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.max(...values.map(exponent)) - 1e-9));
  return {
    ticks: Array.from({ length: high - low + 1 }, (_, i) => base ** (low + i)),
    at: (value: number): number => from + ((to - from) * (exponent(value) - low)) / (high - low),
  };
}

function rule(at: number, across: 'x' | 'y'): string {
  const ends =
    across === 'x'
      ? `x1="${at}" x2="${at}" y1="${MARGIN.top}" y2="${HEIGHT - MARGIN.bottom}"`
      : `y1="${at}" y2="${at}" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}"`;
  return `<line ${ends} stroke="#ddd"/>`;
}

function label(x: number, y: number, value: number, anchor: string): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${Number(value.toPrecision(3))}</text>`;
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
