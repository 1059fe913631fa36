import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { expect } from 'chai';
import { settingsTable } from './support/settings-table.js';

describe('the README', () => {
  it('holds the table of settings as the code has them', async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const table = settingsTable();
    expect(table).not.to.contain(homedir());
    expect(readme, `put this into README.md:\n${table}\n`).to.contain(table);
  });
});
