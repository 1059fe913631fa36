import type { Door } from './door.js';
import { type Feature, lackOf } from './feature.js';

/** Features by door, in Markdown; under it, why a door lacks what it lacks. */
export function conformanceTable(features: readonly Feature[], doors: readonly Door[]): string {
  const notes: string[] = [];
  const cell = (door: Door, feature: Feature): string => {
    const lack = lackOf(door, feature);
    if (lack === undefined) return 'yes';
    if (!notes.includes(lack)) notes.push(lack);
    return `– <sup>${notes.indexOf(lack) + 1}</sup>`;
  };
  const rows = features.map((feature) =>
    ['', capital(feature.does), ...doors.map((door) => cell(door, feature)), ''].join(' | ').trim(),
  );
  return [
    ['', 'A door ...', ...doors.map(({ name }) => name), ''].join(' | ').trim(),
    `|---|${doors.map(() => ':---:|').join('')}`,
    ...rows,
    '',
    '– has no place in the protocol:',
    '',
    ...notes.map((note, i) => `${i + 1}. ${note}`),
  ].join('\n');
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
