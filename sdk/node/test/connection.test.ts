// How calls end when the server is slow, silent, away or strange. The server here is a few lines that say what a test wants.
import assert from 'node:assert/strict';
import {once} from 'node:events';
import * as net from 'node:net';
import {test, type TestContext} from 'node:test';
import {Client, DelayqError, Worker, type ClientOptions} from 'delayq';
import {eventually, quiet} from './server';

type Answer = (words: string[], socket: net.Socket) => string | null;

/** Answers HELLO itself, and everything else as `answer` says; null is no answer. */
class Fake {
  readonly commands: string[][] = [];
  readonly chunks: number[] = [];
  connections = 0;
  private readonly sockets = new Set<net.Socket>();
  private readonly server = net.createServer((socket) => this.serve(socket));

  private constructor(private readonly answer: Answer) {}

  static async start(test: TestContext, answer: Answer): Promise<Fake> {
    const fake = new Fake(answer);
    fake.server.listen(0, '127.0.0.1');
    await once(fake.server, 'listening');
    test.after(() => fake.stop());
    return fake;
  }

  client(test: TestContext, options: ClientOptions = {}): Client {
    const client = new Client({server: `127.0.0.1:${this.port}`, logger: quiet, ...options});
    test.after(() => client.close());
    return client;
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  stop(): void {
    this.server.close();
    this.cut();
  }

  private serve(socket: net.Socket): void {
    ++this.connections;
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('error', () => {});
    let rest = '';
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1');
      let commands = 0;
      for (;;) {
        const words = wordsOf(rest);
        if (words === null) break;
        rest = rest.slice(words.length);
        const said = words.words[0] === 'HELLO' ? '%1\r\n+proto\r\n:3\r\n' : this.answer(words.words, socket);
        if (words.words[0] !== 'HELLO') {
          this.commands.push(words.words);
          ++commands;
        }
        if (said !== null && !socket.destroyed) socket.write(said);
      }
      this.chunks.push(commands);
    });
  }
}

function wordsOf(text: string): {words: string[]; length: number} | null {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return null;
  const words: string[] = [];
  let at = head[0].length;
  for (let i = 0; i < Number(head[1]); ++i) {
    const length = /^\$(\d+)\r\n/.exec(text.slice(at, at + 20));
    if (length === null) return null;
    at += length[0].length;
    words.push(text.slice(at, at + Number(length[1])));
    at += Number(length[1]) + 2;
    if (at > text.length) return null;
  }
  return {words, length: at};
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (problem) {
    assert.ok(problem instanceof DelayqError, String(problem));
    return problem.code;
  }
  return 'none';
}

test('calls at the same time leave in one write', async (context) => {
  const fake = await Fake.start(context, () => '+x\r\n');
  const client = fake.client(context);
  await client.enqueue('t', '0', 'x');
  await Promise.all(Array.from({length: 100}, (_, i) => client.enqueue('t', `${i}`, 'x')));
  assert.equal(fake.commands.length, 101);
  assert.ok(fake.chunks.includes(100), fake.chunks.join(' '));
});

test('a lost connection: an enqueue is sent again, what cannot be repeated safely is not', async (context) => {
  let cuts = 1;
  const fake = await Fake.start(context, (words, socket) => {
    if (cuts > 0 && cuts-- > 0) socket.destroy();
    return words[0] === 'CANCEL' ? '+unknown\r\n' : '+x\r\n';
  });
  const client = fake.client(context);
  assert.equal(await client.enqueue('t', 'a', 'x'), 'a');
  assert.equal(fake.commands.length, 2);
  assert.deepEqual(fake.commands[0], fake.commands[1]);
  for (const call of [
    () => client.dequeue('t', 'a'),
    () => client.cancelGroup('g'),
    () => client.removeSchedule('s'),
    () => client.runSchedule('s'),
    () => client.enqueue('t', 'a', 'x', {onConflict: 'reject'}),
  ]) {
    const before: number = fake.commands.length;
    cuts = 1;
    assert.equal(await codeOf(call()), 'unavailable');
    assert.equal(fake.commands.length, before + 1);
  }
  cuts = 1;
  assert.equal(await codeOf(client.enqueue('t', 'b', 'x')), 'none');
});

test('a connection that was lost while nothing was under way is made again, for every call', async (context) => {
  const fake = await Fake.start(context, () => '+cancelled\r\n');
  let isLost = false;
  const client = fake.client(context, {retryFor: 0, logger: {...quiet, warn: () => void (isLost = true)}});
  assert.equal(await client.dequeue('t', 'a'), 'cancelled');
  fake.cut();
  await eventually('the client sees that the connection is lost', () => isLost);
  assert.equal(await client.dequeue('t', 'b'), 'cancelled');
  assert.equal(fake.connections, 2);
});

test('a server that is overloaded is asked again, after as long as it says', async (context) => {
  let refusals = 2;
  const fake = await Fake.start(context, () => (refusals-- > 0 ? '-OVERLOADED too much at once (try again in 20ms)\r\n' : '+x\r\n'));
  const client = fake.client(context);
  assert.equal(await client.enqueue('t', 'a', 'x'), 'a');
  assert.equal(fake.commands.length, 3);
  refusals = 1;
  assert.equal(await codeOf(fake.client(context, {retryFor: 0}).enqueue('t', 'a', 'x')), 'overloaded');
});

test('a server that is away: the call fails after retryFor', async (context) => {
  const fake = await Fake.start(context, () => null);
  const {port} = fake;
  fake.stop();
  const client = new Client({server: `127.0.0.1:${port}`, logger: quiet, retryFor: 200});
  const began = Date.now();
  assert.equal(await codeOf(client.enqueue('t', 'a', 'x')), 'unavailable');
  assert.ok(Date.now() - began >= 150);
  await client.close();
});

test('a server that says nothing: the call fails after the timeout', async (context) => {
  const fake = await Fake.start(context, () => null);
  const client = fake.client(context, {timeout: 100, retryFor: 0});
  assert.equal(await codeOf(client.enqueue('t', 'a', 'x')), 'unavailable');
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  context.after(() => silent.close());
  const other = new Client({server: `127.0.0.1:${(silent.address() as net.AddressInfo).port}`, logger: quiet, connectTimeout: 100, retryFor: 0});
  assert.equal(await codeOf(other.enqueue('t', 'a', 'x')), 'unavailable');
  await other.close();
});

test('answers from something else than delayq are errors', async (context) => {
  const fake = await Fake.start(context, () => 'HTTP/1.1 400 Bad Request\r\n');
  assert.equal(await codeOf(fake.client(context, {retryFor: 0}).enqueue('t', 'a', 'x')), 'unavailable');
  const other = await Fake.start(context, () => '+x\r\n+y\r\n');
  const client = other.client(context, {retryFor: 0});
  assert.equal(await client.enqueue('t', 'a', 'x'), 'a');
});

test('a call can be given up, and the others get their own answers', async (context) => {
  let release = (): void => {};
  const fake = await Fake.start(context, (words, socket) => {
    if (!words.includes('slow')) return '+done\r\n';
    release = () => void socket.write('+dead\r\n');
    return null;
  });
  const client = fake.client(context);
  const controller = new AbortController();
  const slow = client.dequeue('t', 'slow', {signal: controller.signal});
  await eventually('the command has come', () => fake.commands.length > 0);
  controller.abort(new Error('enough'));
  await assert.rejects(slow, /enough/);
  const next = client.dequeue('t', 'next');
  release();
  assert.equal(await next, 'done');
  const many = client.enqueueMany([{topic: 't', id: 'slow', payload: 'x'}], {signal: AbortSignal.timeout(20)});
  await assert.rejects(many, {name: 'TimeoutError'});
  release();
  await assert.rejects(client.dequeue('t', 'never', {signal: AbortSignal.abort(new Error('before'))}), /before/);
});

test('only so many calls may wait', async (context) => {
  const fake = await Fake.start(context, () => null);
  const client = fake.client(context, {maxPending: 10, timeout: 200, retryFor: 0});
  const calls = Array.from({length: 11}, (_, i) => codeOf(client.enqueue('t', `${i}`, 'x')));
  assert.equal(await calls[10], 'overloaded');
  assert.deepEqual(await Promise.all(calls.slice(0, 10)), Array(10).fill('unavailable'));
});

test('a connection that is closed again and again is not made in a tight loop', async (context) => {
  const fake = await Fake.start(context, (_, socket) => {
    socket.destroy();
    return null;
  });
  assert.equal(await codeOf(fake.client(context, {retryFor: 500}).enqueue('t', 'a', 'x')), 'unavailable');
  assert.ok(fake.connections < 15, `${fake.connections} connections in half a second`);
});

test('a pop may wait for longer than the timeout', async (context) => {
  let pops = 0;
  const fake = await Fake.start(context, (words, socket) => {
    if (words[0] !== 'POP') return '*1\r\n_\r\n';
    ++pops;
    setTimeout(() => socket.write('*0\r\n'), 400);
    return null;
  });
  const worker = new Worker(fake.client(context, {timeout: 100}), {wait: '1s'}).handle('t', () => {});
  const running = worker.run();
  await eventually('three pops', () => pops >= 3);
  await worker.stop();
  await running;
  // The one for pops and the one for results.
  assert.equal(fake.connections, 2);
  assert.deepEqual(fake.commands.find((words) => words[0] === 'POP'), ['POP', 't', 'COUNT', '10', 'WAIT', '1000ms', 'HEADERS']);
});

test('no topic waits until the others are empty, and one may be called WAIT', async (context) => {
  const fake = await Fake.start(context, (words) => (words[0] === 'POP' ? '*0\r\n' : '*1\r\n_\r\n'));
  const worker = new Worker(fake.client(context), {wait: '1s'});
  for (const topic of ['a', 'b', 'wait']) worker.handle(topic, () => {});
  const running = worker.run();
  const pops = (): string[] => fake.commands.filter((words) => words[0] === 'POP').map((words) => words.slice(1, 4).join(' '));
  await eventually('three pops', () => pops().length >= 3);
  await worker.stop();
  await running;
  assert.deepEqual(pops().slice(0, 3), ['wait a b', 'wait b a', 'wait a b']);
  const both = new Worker(fake.client(context)).handle('WAIT', () => {}).handle('count', () => {});
  await assert.rejects(both.run(), {code: 'invalid'});
});

test('a server that does not know RELEASE gets a nack without a delay', async (context) => {
  const fake = await Fake.start(context, (words) => {
    if (words[0] === 'POP') return '*1\r\n*7\r\n+t/1/1\r\n+t\r\n+a\r\n$1\r\nx\r\n:1\r\n:1\r\n%0\r\n';
    if (words[0] === 'RELEASE') return '-INVALID unknown command "RELEASE"; COMMAND LIST lists all commands\r\n';
    return words[0] === 'NACK' ? '+OK\r\n' : '-UNAVAILABLE not now\r\n';
  });
  const worker = new Worker(fake.client(context, {retryFor: 100}), {concurrency: 1, grace: 0, lease: '60s'});
  worker.handle('t', (job) => {
    void worker.stop();
    return new Promise((_, reject) => job.signal.addEventListener('abort', () => reject(job.signal.reason)));
  });
  await worker.run();
  assert.deepEqual(fake.commands.filter((words) => words[0] === 'NACK'), [['NACK', 't/1/1', 'DELAY', '0', 'REASON', 'worker stopped']]);
});
