export { type PreparedModel, type PrepareProgress, prepareModel } from './models/prepare.js';
export { compareModel, type ModelComparison } from './tuning/compare-model.js';
export { chooseByPath, medianOf, type PathFigures } from './tuning/layouts.js';
export { type ModelProfile, profileModel } from './tuning/profile-model.js';
export type { Trial } from './tuning/search.js';
export { MARGIN, storeTuning, TOLERANCE, type TuneResult, tuneModel } from './tuning/tune-model.js';
export { type RunningWorker, startWorker } from './worker.js';
