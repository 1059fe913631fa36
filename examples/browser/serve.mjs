// Serves the page and the client's compiled files as they are, and nothing else: the page itself talks to the
// gateway. PORT (8090) is where; MILLRACE_URL says which gateway the page begins with.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname } from 'node:path';

const HERE = new URL('./', import.meta.url);
const CLIENT = new URL('../../packages/client/dist/', import.meta.url);
const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' };
const { PORT = '8090', MILLRACE_URL = 'http://127.0.0.1:8080' } = process.env;

if (!existsSync(new URL('index.js', CLIENT))) {
  console.error('The client is not compiled yet: run npm start, or npm run build.');
  process.exit(1);
}

/** What there is, by its path: no other file can be asked for. */
const files = new Map([...filesOf(HERE, '/'), ...filesOf(CLIENT, '/client/')]);
files.set('/', files.get('/index.html'));

const server = createServer((req, res) => {
  const { pathname } = new URL(req.url ?? '/', 'http://page');
  const file = files.get(pathname);
  if (!file) return res.writeHead(404).end();
  const type = TYPES[extname(file.pathname)];
  res.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' });
  return res.end(readFileSync(file));
});
server.listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${server.address().port}`;
  console.log(`Open ${origin}/?server=${encodeURIComponent(MILLRACE_URL)}`);
  console.log(`The gateway must allow the page: MILLRACE_CORS_ORIGINS=${origin} npm start`);
});

function filesOf(folder, path) {
  return readdirSync(folder)
    .filter((name) => extname(name) in TYPES)
    .map((name) => [path + name, new URL(name, folder)]);
}
