import { writeFile } from 'node:fs/promises';

export interface GraphPoint {
  x: number;
  y: number;
}

export interface Graph {
  title: string;
  xLabel: string;
  yLabel: string;
  series: Readonly<Record<string, readonly GraphPoint[]>>;
  /** A line across at this height, named. */
  limit?: { y: number; name: string };
  /** Highest value drawn; what lies above is cut off. */
  yMost: number;
}

const WIDTH = 760;
const HEIGHT = 440;
const LEFT = 64;
const RIGHT = 150;
const TOP = 44;
const BOTTOM = 52;
const COLOURS = ['#1a6fb5', '#d1603d', '#3c8d5a', '#8a5fb0', '#a08020', '#5f7480', '#c2477f', '#2a9aa0'];

/** A line chart as SVG, readable on a light and a dark page. */
export async function writeGraph(file: string, graph: Graph): Promise<void> {
  await writeFile(file, svgOf(graph));
}

export function svgOf({ title, xLabel, yLabel, series, limit, yMost }: Graph): string {
  const all = Object.values(series).flat();
  const xMost = niceCeiling(Math.max(1, ...all.map(({ x }) => x)));
  const x = (value: number) => LEFT + (value / xMost) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => HEIGHT - BOTTOM - (Math.min(value, yMost) / yMost) * (HEIGHT - TOP - BOTTOM);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(LEFT, 24, title, 'start', 15),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, xLabel, 'middle'),
    `<g transform="rotate(-90)">${text(-(TOP + HEIGHT - BOTTOM) / 2, 16, yLabel, 'middle')}</g>`,
  ];
  for (let i = 0; i <= 5; i++) {
    const [gridX, gridY] = [(xMost * i) / 5, (yMost * i) / 5];
    parts.push(
      line(LEFT, y(gridY), WIDTH - RIGHT, y(gridY), '#ddd'),
      text(LEFT - 6, y(gridY) + 4, tick(gridY), 'end'),
      text(x(gridX), HEIGHT - BOTTOM + 16, tick(gridX), 'middle'),
    );
  }
  if (limit) {
    parts.push(line(LEFT, y(limit.y), WIDTH - RIGHT, y(limit.y), '#b00', '4 4'));
    parts.push(text(WIDTH - RIGHT + 6, y(limit.y) + 4, limit.name, 'start', 12, '#b00'));
  }
  for (const [i, [name, points]] of Object.entries(series).entries()) {
    const colour = COLOURS[i % COLOURS.length] ?? '#000';
    const sorted = [...points].sort((a, b) => a.x - b.x);
    const path = sorted.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`);
    parts.push(`<polyline points="${path.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const point of sorted) {
      parts.push(
        `<circle cx="${x(point.x).toFixed(1)}" cy="${y(point.y).toFixed(1)}" r="3" fill="${colour}"/>`,
      );
    }
    parts.push(text(WIDTH - RIGHT + 6, TOP + 16 * (i + 1), name, 'start', 12, colour));
  }
  return `${parts.join('\n')}\n</svg>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function text(x: number, y: number, content: string, anchor: string, size = 12, fill = '#333'): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" font-size="${size}" fill="${fill}">${escaped(content)}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, stroke: string, dash = ''): string {
  const dashed = dash ? ` stroke-dasharray="${dash}"` : '';
  return `<line x1="${x1}" y1="${y1.toFixed(1)}" x2="${x2}" y2="${y2.toFixed(1)}" stroke="${stroke}"${dashed}/>`;
}

function tick(value: number): string {
  return value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** The next 1, 2, 2.5 or 5 times a power of ten. */
export function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 2.5, 5, 10].find((each) => each * power >= value) ?? 10;
  return factor * power;
}
