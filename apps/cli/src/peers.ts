/** The parts that commands run, loaded only by the process that needs them. */
export const loadGateway = () => import('@millrace/gateway');
export const loadWorker = () => import('@millrace/worker');
