export { ensureRedisServer } from './redis/find-server.js';
export { type PrivateRedis, type PrivateRedisOptions, startPrivateRedis } from './redis/private-redis.js';
