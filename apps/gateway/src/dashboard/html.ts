/** Markup that is safe to put into a page. */
export class Html {
  constructor(readonly text: string) {}
}

type Shown = Html | string | number | false | undefined | readonly Html[];

/** Writes a piece of a page: whatever is put in is text, unless it is a piece itself. */
export function html(pieces: TemplateStringsArray, ...values: Shown[]): Html {
  let text = pieces[0] ?? '';
  for (const [i, value] of values.entries()) text += shown(value) + (pieces[i + 1] ?? '');
  return new Html(text);
}

function shown(value: Shown): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return value === undefined || value === false ? '' : escaped(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
