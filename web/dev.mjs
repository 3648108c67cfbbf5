// For work on the dashboard: serves web/ as it is at each request, and passes everything else on to a running server.
import http from 'node:http';
import {bundle} from './build.mjs';

const server = new URL(process.argv[2]);
const port = Number(process.env.PORT ?? 9280);
http.createServer((request, response) => {
  const path = new URL(request.url, 'http://x').pathname;
  try {
    if (path === '/' || path.startsWith('/ui/')) {
      const wanted = path === '/' ? 'index.html' : path.slice(4);
      const stem = wanted.replace(/-[0-9a-f]{16}/, '');
      const file = bundle({minify: false}).find((each) => each.name.replace(/-[0-9a-f]{16}/, '') === stem);
      response.writeHead(file ? 200 : 404, file ? {'Content-Type': file.type, 'Cache-Control': 'no-store'} : {});
      return response.end(file?.bytes);
    }
  } catch (problem) {
    response.writeHead(500);
    return response.end(String(problem));
  }
  const onward = http.request({host: server.hostname, port: server.port, method: request.method, path: request.url,
    headers: {...request.headers, host: server.host, ...(request.headers.origin && {origin: server.origin})}}, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.writableEnded || response.destroy());
  response.on('close', () => onward.destroy());
  return request.pipe(onward);
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/ before ${server.origin}`));
