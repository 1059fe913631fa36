/** The process of those who listen for events of jobs, as the runner asks for it over the channel. */
import { EventListeners, type FromListeners, type ToListeners } from './load/event-listeners.js';

const listeners = new EventListeners();
const tell = (message: FromListeners): void => void process.send?.(message);

process.on('disconnect', () => process.exit(0));
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.on('message', (asked: ToListeners) => {
  if (asked.type === 'receipts') tell({ type: 'receipts', ...listeners.receipts() });
  else if (asked.type === 'close') {
    listeners.close();
    tell({ type: 'closed' });
  } else {
    listeners.open(asked.url, asked.jobs, asked.listeners).then(
      () => tell({ type: 'opened' }),
      (error: Error) => tell({ type: 'failed', message: error.message }),
    );
  }
});
