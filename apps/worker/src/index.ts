export { type PreparedModel, type PrepareProgress, prepareModel } from './models/prepare.js';
export { type RunningWorker, startWorker } from './worker.js';
