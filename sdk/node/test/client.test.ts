// What the scenarios do not say: what is particular to this library, against a real server.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test, type TestContext} from 'node:test';
import {Client, Dead, DelayqError, RetryIn, Worker, type ClientOptions} from 'delayq';
import {eventually, quiet, Server} from './server';

async function open(context: TestContext, options: ClientOptions = {}): Promise<Client> {
  const server = await Server.start(context);
  return new Client({server: server.address, logger: quiet, ...options});
}

test('payloads: JSON, text and bytes', async (context) => {
  const client = await open(context);
  await client.enqueue('t', 1, {order: 17});
  await client.enqueue('t', 2, 'text');
  await client.enqueue('t', 3, new Uint8Array([255, 0]));
  assert.deepEqual((await client.get('t', 1))?.json(), {order: 17});
  assert.equal((await client.get('t', 2))?.text(), 'text');
  assert.deepEqual((await client.get('t', '3'))?.payload, Buffer.from([255, 0]));
  await client.close();
  await assert.rejects(client.enqueue('t', 1, 'x'), /closed/);
});

test('a misspelled option is an error, not a job that runs at once', async (context) => {
  const client = await open(context);
  for (const options of [{process_in: 1000}, {delay: '30m'}, {onconflict: 'keep'}]) {
    await assert.rejects(client.enqueue('t', 'a', 'x', options as never), (problem) => problem instanceof DelayqError && problem.code === 'invalid');
  }
  await assert.rejects(client.every('s', '1h', 't', 'x', {every: 1} as never), /every/);
  await assert.rejects(client.enqueue(undefined as never, 'a', 'x'), /topic/);
  await assert.rejects(client.enqueue('t', 'a', 'x', {headers: {a: 1n as never}}), /headers\.a/);
  assert.equal(await client.get('t', 'a'), null);
  await client.close();
});

test('a hundred thousand jobs at once', async (context) => {
  const client = await open(context);
  const results = await client.enqueueMany(
    (function* jobs() {
      for (let i = 0; i < 100_000; ++i) yield {topic: 'many', id: `${i}`, payload: 'x', processIn: '1h', group: 'many'};
    })(),
  );
  assert.equal(results.filter((result, i) => result.id === `${i}` && result.error === null).length, 100_000);
  assert.equal(await client.cancelGroup('many'), 100_000);
  await client.close();
});

test('the loop over jobs acks, retries and ends', async (context) => {
  const client = await open(context);
  for (const id of ['a', 'b', 'c', 'd']) await client.enqueue('loop', id, id, {backoff: '1h', priority: id.charCodeAt(0)});
  const seen: string[] = [];
  for await (const job of client.jobs('loop')) {
    seen.push(job.id);
    if (job.id === 'b') await job.nack(new RetryIn('2h', 'not yet'));
    if (job.id === 'c') await job.nack(new Dead('no such order'));
    if (job.id !== 'd') continue;
    await job.ack();
    assert.equal((await client.get('loop', 'd'))?.state, 'done');
    break;
  }
  assert.deepEqual(seen, ['a', 'b', 'c', 'd']);
  assert.equal((await client.get('loop', 'a'))?.state, 'done');
  assert.equal((await client.get('loop', 'b'))?.outcome, 'not yet');
  assert.equal((await client.get('loop', 'c'))?.state, 'dead');
  await client.enqueue('loop', 'e', 'x');
  await assert.rejects(async () => {
    for await (const job of client.jobs('loop')) throw new Error(`cannot do ${job.id}`);
  }, /cannot do e/);
  assert.match((await client.get('loop', 'e'))?.outcome ?? '', /the loop ended/);
  const signal = AbortSignal.timeout(100);
  for await (const job of client.jobs('loop', {signal})) assert.fail(job.id);
  await client.close();
});

test('middleware runs around the handlers, in the order of its adding', async (context) => {
  const client = await open(context);
  const said: string[] = [];
  const worker = new Worker(client, {concurrency: 1});
  worker.use(async (job, next) => {
    said.push(`1 ${job.id}`);
    await next().catch((problem: Error) => said.push(problem.message));
    void worker.stop();
  });
  worker.use((_, next) => {
    said.push('2');
    return next();
  });
  worker.handle('t', () => {
    throw new Error('thrown at once');
  });
  await client.enqueue('t', 'a', 'x');
  await worker.run();
  assert.deepEqual(said, ['1 a', '2', 'thrown at once']);
  assert.equal((await client.get('t', 'a'))?.state, 'done');
  await client.close();
});

test('a worker ends when its signal is aborted, and can run again', async (context) => {
  const client = await open(context);
  const worker = new Worker(client);
  await assert.rejects(worker.run(), /handler/);
  const done: string[] = [];
  worker.handle('t', (job) => void done.push(job.id));
  for (let round = 0; round < 3; ++round) {
    const controller = new AbortController();
    const running = worker.run({signal: controller.signal});
    await assert.rejects(worker.run(), /already/);
    await client.enqueue('t', `${round}`, 'x');
    await eventually('the job is done', () => done.length === round + 1);
    controller.abort();
    await running;
  }
  await client.close();
});

test('many short jobs: each runs once, no more at a time than may', async (context) => {
  const client = await open(context);
  const worker = new Worker(client, {concurrency: 7, lease: '10s'});
  const ids = new Set<string>();
  let running = 0;
  let most = 0;
  await client.enqueueMany(Array.from({length: 3000}, (_, i) => ({topic: 't', id: `${i}`, payload: 'x', retry: 1})));
  worker.handle('t', async (job) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
    --running;
    assert.equal(ids.has(job.id), false);
    ids.add(job.id);
    if (ids.size === 1500) void worker.stop();
  });
  await worker.run();
  // What was taken in advance was given back, although it may be tried only once.
  const second = new Worker(client, {concurrency: 7});
  second.handle('t', (job) => {
    assert.equal(job.attempt, 1);
    ids.add(job.id);
    if (ids.size === 3000) void second.stop();
  });
  await second.run();
  assert.equal(most, 7);
  assert.equal(ids.size, 3000);
  await client.close();
});

test('a long job does not hold up those that were taken in advance', async (context) => {
  const client = await open(context);
  const names = [...Array.from({length: 300}, (_, i) => `a${i}`), 'long', ...Array.from({length: 50}, (_, i) => `z${i}`)];
  await client.enqueueMany(names.map((id) => ({topic: 't', id, payload: 'x'})));
  const done = new Set<string>();
  const workers = [1, 2].map(() => new Worker(client, {concurrency: 1}));
  const second = (): Promise<void> => workers[1]!.run();
  let other: Promise<void> | undefined;
  for (const worker of workers) {
    worker.handle('t', async (job) => {
      if (job.id === 'long') {
        other = second();
        await eventually('the others are done', () => done.size === names.length - 1);
      }
      done.add(job.id);
      if (done.size === names.length) for (const one of workers) void one.stop();
    });
  }
  await workers[0]!.run();
  await other;
  assert.equal(done.size, names.length);
  await client.close();
});

test('a program ends although it has not closed its client', async (context) => {
  const server = await Server.start(context);
  const program = `const {Client} = require('delayq'); new Client().enqueue('t', 'a', 'x').then(console.log)`;
  const said = execFileSync(process.execPath, ['-e', program], {cwd: join(__dirname, '..'), env: {...process.env, DELAYQ_RESP: server.address}, timeout: 20_000});
  assert.equal(said.toString(), 'a\n');
});

test('TLS', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'delayq-node-tls-'));
  context.after(() => rmSync(folder, {recursive: true}));
  const file = (name: string): string => join(folder, name);
  const openssl = (...words: string[]): Buffer => execFileSync('openssl', words, {stdio: 'pipe'});
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', file('key.pem'), '-out', file('cert.pem'));
  const secure = await Server.start(context, undefined, '--set', `tls.certificate=${file('cert.pem')}`, '--set', `tls.key=${file('key.pem')}`);
  const ca = readFileSync(file('cert.pem'));
  for (const host of ['127.0.0.1', 'localhost']) {
    const client = new Client({server: `${host}:${secure.port}`, tls: {ca}, logger: quiet});
    assert.equal(await client.enqueue('t', host, 'x'.repeat(300_000)), host);
    assert.equal((await client.get('t', host))?.payload.length, 300_000);
    await client.close();
  }
  const stranger = new Client({server: secure.address, tls: true, retryFor: 0, logger: quiet});
  await assert.rejects(stranger.enqueue('t', 'x', 'x'), (problem) => problem instanceof DelayqError && problem.code === 'unavailable' && /self.signed/.test(problem.message));
  await stranger.close();
});
