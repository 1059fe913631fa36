import { expect } from 'chai';
import { Cluster } from '../support/cluster.js';
import { distance, MINILM, sampleSentences } from '../support/minilm.js';
import { DOORS } from './doors/index.js';
import { nativeDoor } from './doors/native.js';
import { teiDefaultDoor, teiDoor } from './doors/tei.js';

const SAME = 1e-6;

describe('every door with the real model', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start({ models: [MINILM] });
  });
  after(() => cluster?.stop());

  for (const door of DOORS.map((each) => (each === teiDoor ? teiDefaultDoor : each))) {
    it(`${door.name}: gives the native door's vectors, one text at a time`, async () => {
      const to = { url: cluster.url, grpc: cluster.gateways[0]?.grpc ?? '', model: MINILM };
      for (const text of (await sampleSentences()).slice(0, 8)) {
        // One by one: what a text shares a run with may change its last digits.
        const native = await nativeDoor.ask(to, [text]);
        const own = await door.ask(to, [text]);
        expect(own.status, own.message).to.equal(200);
        expect(distance(own.vectors[0] ?? [], native.vectors[0] ?? [])).to.be.below(SAME);
      }
    });
  }
});
