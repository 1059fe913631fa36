import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { DOORS } from './doors/index.js';
import { lackOf } from './feature.js';
import { FEATURES } from './features/index.js';
import { CLASSES } from './refusal.js';
import { Stage } from './stage.js';
import { conformanceTable } from './table.js';

describe('every door', () => {
  const stage = new Stage();
  before(() => stage.open());
  after(() => stage.release());

  for (const door of DOORS) {
    describe(`${door.name}:`, () => {
      for (const feature of FEATURES) {
        if (lackOf(door, feature) !== undefined) continue;
        it(feature.does, () => feature.run(door, stage));
      }
    });
  }

  describe('all together', () => {
    it('gives the same fault the same status class as all others', () => {
      expect(CLASSES.size).to.be.above(0);
      for (const [fault, byDoor] of CLASSES) {
        expect(new Set(byDoor.values()).size, `${fault}: ${JSON.stringify([...byDoor])}`).to.equal(1);
      }
    });

    it('lacks only features that there are', () => {
      const keys = FEATURES.map(({ key }) => key);
      expect(new Set(keys).size).to.equal(keys.length);
      for (const { lacks } of DOORS) expect(keys).to.include.members(Object.keys(lacks));
    });

    it('has its column in docs/doors.md', async () => {
      const doc = await readFile(new URL('../../../docs/doors.md', import.meta.url), 'utf8');
      const table = conformanceTable(FEATURES, DOORS);
      expect(doc, `put this into docs/doors.md:\n${table}\n`).to.contain(table);
    });
  });
});
