import type { Door } from './door.js';
import type { Stage } from './stage.js';

/** What every door has to do, unless its protocol has no place for it. */
export interface Feature {
  /** Names it where a door says that it lacks it. */
  key: string;
  /** A sentence that goes on after the door's name; a row of the table. */
  does: string;
  /** About the transport: for doors over HTTP. */
  overHttp?: boolean;
  run(door: Door, stage: Stage): Promise<void>;
}

/** Why a door lacks a feature; undefined where it has to have it. */
export function lackOf(door: Door, { key, overHttp }: Feature): string | undefined {
  if (overHttp && !door.http) return 'that is about bodies over HTTP';
  return door.lacks[key];
}
