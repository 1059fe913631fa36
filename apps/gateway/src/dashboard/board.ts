import { createBullBoard } from '@bull-board/api';
import { ExpressAdapter } from '@bull-board/express';
import { BATCHES_QUEUE, CALLBACKS_QUEUE } from '@millrace/shared';
import type { RequestHandler } from 'express';
import type { JobProducer } from '../inference/job-producer.js';
import type { ModelDirectory } from '../inference/model-directory.js';
import { BoardQueue } from './board-queue.js';
import { InferenceQueue } from './inference-queue.js';
import type { JobActions } from './job-actions.js';
import { DASHBOARD_PATH, ICON_PATH } from './pages.js';
import { REQUESTS_PATH } from './requests/links.js';

/** bull-board over the queues of all known models; a model that appears later is there at the next look. */
export function queueBoard(
  directory: ModelDirectory,
  producer: JobProducer,
  { admin, callbacks, actions }: { admin: boolean; callbacks: boolean; actions: JobActions },
): RequestHandler {
  const server = new ExpressAdapter().setBasePath(DASHBOARD_PATH);
  const board = createBullBoard({
    queues: [],
    serverAdapter: server,
    options: {
      uiConfig: {
        boardTitle: 'Millrace',
        favIcon: { default: ICON_PATH, alternative: ICON_PATH },
        miscLinks: [
          { text: 'Requests', url: REQUESTS_PATH },
          { text: 'Log out', url: `${DASHBOARD_PATH}/logout` },
        ],
      },
    },
  });
  const readOnlyMode = !admin;
  if (callbacks) {
    const options = { readOnlyMode, displayName: 'callbacks' };
    board.addQueue(new BoardQueue(producer.queue(CALLBACKS_QUEUE), options));
  }
  // Batches are turned at their own addresses: a job removed here would only be added again.
  const batches = producer.queue(BATCHES_QUEUE);
  board.addQueue(new BoardQueue(batches, { readOnlyMode: true, displayName: 'batches' }));
  const shown = new Set<string>();
  const handle = server.getRouter();
  handle.disable('x-powered-by');
  return (req, res, next) => {
    for (const { queue, description } of directory.list()) {
      if (shown.has(queue)) continue;
      shown.add(queue);
      const displayName = `${description.name} ${description.version}`;
      board.addQueue(new InferenceQueue(producer.queue(queue), actions, { readOnlyMode, displayName }));
    }
    handle(req, res, next);
  };
}
