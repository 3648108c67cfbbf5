// A real server and a real browser for tests. Everything waits for an event, with a deadline.
import {spawn} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import http from 'node:http';
import net from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const require = createRequire(join(process.env.NODE_PATH, 'x.js'));
const {chromium} = require('playwright-core');
export const axe = require('axe-core');
export const deadline = Number(process.env.DELAYQ_DEADLINE ?? 30_000);

const program = process.env.DELAYQ;
export const launch = () => chromium.launch({executablePath: process.env.DELAYQ_CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb']});

/** Until the answer is truthy; what only another process brings is asked for again and again. */
export async function until(what, ask) {
  const end = Date.now() + deadline;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A port that is free now, so that a server can come back at the same one. */
const freePort = () => new Promise((resolve) => {
  const probe = net.createServer().listen(0, '127.0.0.1', () => {
    const {port} = probe.address();
    probe.close(() => resolve(port));
  });
});

export class Server {
  static async start({tokens = [], options = []} = {}) {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), 'delayq-browser-'));
    const config = join(server.folder, 'delayq.toml');
    writeFileSync(config, tokens.map(({name, scopes, topics = ['*']}) =>
      `[[tokens]]\nname = "${name}"\nscopes = ${JSON.stringify(scopes)}\ntopics = ${JSON.stringify(topics)}\nsha256 = "${createHash('sha256').update(`secret-${name}`).digest('hex')}"\n`).join('\n'));
    server.port = await freePort();
    server.options = ['serve', '--config', config, '--data', join(server.folder, 'data'), '--http', `127.0.0.1:${server.port}`, '--resp', '127.0.0.1:0', '--log-level', 'warn', ...options];
    await server.run();
    return server;
  }
  get url() {
    return `http://127.0.0.1:${this.port}/`;
  }
  async run() {
    this.process = spawn(program, this.options, {stdio: ['ignore', 'pipe', 'inherit']});
    let said = '';
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`the server did not start: ${said}`)), deadline);
      this.process.on('exit', () => reject(new Error(`the server ended: ${said}`)));
      this.process.stdout.on('data', (part) => {
        said += part;
        if (!said.includes('Ctrl-C stops it')) return;
        clearTimeout(timer);
        resolve();
      });
    });
    this.said = said;
  }
  kill() {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.removeAllListeners('exit');
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGKILL');
    return Promise.race([gone, ended]);
  }
  async stop() {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill();
    rmSync(this.folder, {recursive: true, force: true});
  }
  async ask(method, path, body, headers = {}) {
    const response = await fetch(new URL(path, this.url), {method, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body), headers: {'Content-Type': 'application/json', ...headers}});
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }
  push(topic, job) {
    return this.ask('POST', `v1/topics/${topic}/jobs`, {body: 1, ...job});
  }
  /** Makes a dead job with this error. */
  async bury(topic, id, reason) {
    await this.push(topic, {id});
    const {jobs} = await this.ask('POST', `v1/topics/${topic}/pop`, {wait: '5s'});
    await this.ask('POST', 'v1/nack', {leases: jobs.map((job) => job.lease), dead: true, reason});
  }
  counts(topic) {
    return this.ask('GET', `v1/topics/${topic}`).then((answer) => answer.counts);
  }
}

/** Answers callbacks with this status. */
export async function receiver(status) {
  const server = http.createServer((request, response) => {
    request.resume();
    response.writeHead(status).end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {url: `http://127.0.0.1:${server.address().port}/hook`, stop: () => (server.closeAllConnections(), server.close())};
}

/** A proxy that shows the server below a path, as a reverse proxy does. */
export async function proxyBelow(prefix, target) {
  const proxy = http.createServer((request, response) => {
    if (!request.url.startsWith(prefix)) return response.writeHead(404).end();
    const onward = http.request({host: '127.0.0.1', port: target.port, method: request.method, path: `/${request.url.slice(prefix.length)}`, headers: request.headers}, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    return request.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {url: `http://127.0.0.1:${proxy.address().port}${prefix}`, stop: () => (proxy.closeAllConnections(), proxy.close())};
}
