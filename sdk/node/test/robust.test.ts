// What breaks in production: workers and servers that are killed, connections that are cut. Nothing is lost, no job runs
// twice at once, and the workers go on by themselves.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import * as net from 'node:net';
import {join} from 'node:path';
import {test} from 'node:test';
import {Client, Worker, type Job} from 'delayq';
import {DEADLINE, DEEP, eventually, newRandom, quiet, Server} from './server';

const CUT_FOR = DEEP ? 60_000 : 10_000;

/** Sees which jobs run, across workers. */
class Book {
  readonly done = new Set<string>();
  readonly overlaps: string[] = [];
  runs = 0;
  private readonly running = new Map<string, Job>();

  readonly handler = async (job: Job): Promise<void> => {
    ++this.runs;
    const other = this.running.get(job.id);
    if (other !== undefined && !other.signal.aborted) this.overlaps.push(`${job.id}, attempt ${other.attempt} and ${job.attempt}`);
    this.running.set(job.id, job);
    await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 20));
    if (this.running.get(job.id) === job) this.running.delete(job.id);
    this.done.add(job.id);
  };
}

test('a worker is killed in the middle of a job: another one gets it', async (context) => {
  const server = await Server.start(context);
  const client = new Client({server: server.address, logger: quiet});
  await client.enqueue('deadly', 'a', 'x', {backoff: '100ms'});
  const victim = spawn(process.execPath, [join(__dirname, 'victim.js'), server.address], {stdio: ['ignore', 'pipe', 'inherit']});
  context.after(() => victim.kill('SIGKILL'));
  const [said] = (await once(victim.stdout, 'data')) as [Buffer];
  assert.equal(said.toString().trim(), 'a');
  victim.kill('SIGKILL');
  await once(victim, 'exit');
  const worker = new Worker(client);
  let attempt = 0;
  worker.handle('deadly', (job) => {
    attempt = job.attempt;
    void worker.stop();
  });
  await worker.run();
  assert.equal(attempt, 2);
  assert.equal((await client.get('deadly', 'a'))?.state, 'done');
  await client.close();
});

/** Enqueues while `goesOn`, at most some hundred jobs at a time. Returns the ids of those that the server has confirmed. */
async function produce(client: Client, goesOn: () => boolean): Promise<string[]> {
  const stored: string[] = [];
  for (let i = 0; goesOn(); ++i) {
    const calls = Array.from({length: 10}, (_, part) =>
      part % 2 === 0 ? client.enqueue('t', null, 'x', {timeout: '5s', backoff: '100ms'}) : client.enqueue('t', `own:${i}:${part}`, 'x', {timeout: '5s', backoff: '100ms', processIn: 300}),
    );
    for (const result of await Promise.allSettled(calls)) if (result.status === 'fulfilled') stored.push(result.value);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return stored;
}

async function finish(book: Book, stored: string[], workers: Worker[], runs: Array<Promise<void>>): Promise<void> {
  await eventually('all jobs are done', () => stored.every((id) => book.done.has(id)), DEADLINE).catch((problem) => {
    const lost = stored.filter((id) => !book.done.has(id));
    throw new Error(`${lost.length} of ${stored.length} jobs did not run, such as ${String(lost[0])}: ${String(problem)}`);
  });
  await Promise.all(workers.map((worker) => worker.stop()));
  await Promise.all(runs);
  assert.deepEqual(book.overlaps, []);
  console.log(`${stored.length} jobs, ${book.runs - stored.length} runs more than jobs`);
}

test('the server is killed and restarted under running workers', async (context) => {
  const server = await Server.start(context);
  const settings = {server: server.address, logger: quiet, retryFor: 30_000};
  const client = new Client(settings);
  const book = new Book();
  const workers = [1, 2].map(() => new Worker(new Client(settings), {concurrency: 5}).handle('t', book.handler));
  const runs = workers.map((worker) => worker.run());
  let restarts = 0;
  const producing = produce(client, () => restarts < 3);
  for (; restarts < 3; ++restarts) {
    const before = book.done.size;
    await eventually('50 more jobs are done', () => book.done.size >= before + 50);
    await server.kill();
    await server.begin();
  }
  const stored = await producing;
  assert.ok(stored.length > 100, `only ${stored.length} jobs were stored`);
  await finish(book, stored, workers, runs);
  await client.close();
});

/** Passes bytes on, and cuts a connection at one of a hundred chunks. */
class Proxy {
  cuts = 0;
  private constructor(private readonly server: net.Server) {}

  static async start(target: number, random: () => number): Promise<Proxy> {
    const server = net.createServer();
    const proxy = new Proxy(server);
    server.on('connection', (near) => {
      const far = net.connect(target, '127.0.0.1');
      const cut = (): void => {
        near.destroy();
        far.destroy();
      };
      for (const [from, to] of [[near, far], [far, near]] as const) {
        from.on('data', (chunk) => {
          if (random() >= 0.01) return void to.write(chunk);
          ++proxy.cuts;
          // A part of the chunk may still arrive.
          to.write(chunk.subarray(0, Math.floor(random() * (chunk.length + 1))), cut);
          return undefined;
        });
        from.on('close', cut);
        from.on('error', cut);
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as net.AddressInfo).port}`;
  }
  close(): void {
    this.server.close();
  }
}

test('connections are cut at random', async (context) => {
  const random = newRandom();
  const server = await Server.start(context);
  const proxy = await Proxy.start(server.port, random);
  context.after(() => proxy.close());
  const settings = {server: proxy.address, logger: quiet};
  const client = new Client(settings);
  const book = new Book();
  const workers = [1, 2].map(() => new Worker(new Client(settings), {concurrency: 5}).handle('t', book.handler));
  const runs = workers.map((worker) => worker.run());
  const end = Date.now() + CUT_FOR;
  const stored = await produce(client, () => Date.now() < end);
  await finish(book, stored, workers, runs);
  assert.ok(proxy.cuts > 5, `only ${proxy.cuts} cuts`);
  console.log(`${proxy.cuts} connections were cut`);
  await client.close();
});
