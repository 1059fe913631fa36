const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** `17 bytes`, `1.2 MB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const shown = unit === 0 || value >= 99.5 ? value.toFixed(0) : value.toFixed(1);
  return `${shown} ${UNITS[unit]}`;
}

/** `1,234,567`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** `12 s`, `34 min`, `5.6 h`. */
export function timeText(seconds: number): string {
  if (seconds < 100) return `${Math.ceil(seconds)} s`;
  return seconds < 100 * 60 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** A rate a second: `0.25/s`, `17/s`. */
export function rateText(perSecond: number): string {
  const shown = perSecond < 10 ? Number(perSecond.toPrecision(2)) : Math.round(perSecond);
  return `${shown.toLocaleString('en-US')}/s`;
}
