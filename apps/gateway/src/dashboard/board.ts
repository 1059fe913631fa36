import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { CALLBACKS_QUEUE } from '@millrace/shared';
import type { RequestHandler } from 'express';
import type { JobProducer } from '../inference/job-producer.js';
import type { ModelDirectory } from '../inference/model-directory.js';
import { DASHBOARD_PATH } from './pages.js';

/** bull-board over the queues of all known models; a model that appears later is there at the next look. */
export function queueBoard(
  directory: ModelDirectory,
  producer: JobProducer,
  { admin, callbacks }: { admin: boolean; callbacks: boolean },
): RequestHandler {
  const server = new ExpressAdapter().setBasePath(DASHBOARD_PATH);
  const board = createBullBoard({
    queues: [],
    serverAdapter: server,
    options: {
      uiConfig: {
        boardTitle: 'Millrace',
        miscLinks: [{ text: 'Log out', url: `${DASHBOARD_PATH}/logout` }],
      },
    },
  });
  const add = (queue: string, displayName: string): void =>
    board.addQueue(new BullMQAdapter(producer.queue(queue), { readOnlyMode: !admin, displayName }));
  if (callbacks) add(CALLBACKS_QUEUE, 'callbacks');
  const shown = new Set<string>();
  const handle = server.getRouter();
  handle.disable('x-powered-by');
  return (req, res, next) => {
    for (const { queue, description } of directory.list()) {
      if (shown.has(queue)) continue;
      shown.add(queue);
      add(queue, `${description.name} ${description.version}`);
    }
    handle(req, res, next);
  };
}
