export { makeApiKey } from './admission/api-keys.js';
export { type Gateway, startGateway } from './gateway.js';
