// Carries out the scenarios of sdk/spec, which say what a client library does, against a real server.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {Client, Dead, DelayqError, JobStopped, RetryIn, Worker, type Job} from 'delayq';
import {errorOfLine} from '../dist/errors';
import {Decoder, ErrorReply} from '../dist/resp';
import {DEADLINE, quiet, Server} from './server';

const SPEC = join(__dirname, '..', '..', 'spec');
const NEAR = 20_000;
type Json = any; // eslint-disable-line @typescript-eslint/no-explicit-any
type Step = Record<string, Json>;

const COMMON = ['do', 'client', 'result', 'error', 'message', 'retryable', 'save'];
const JOB = ['topic', 'id', 'payload', 'process_in', 'process_at', 'priority', 'retry', 'backoff', 'timeout', 'group', 'callback', 'headers', 'on_conflict'];
const SCHEDULE = ['name', 'topic', 'payload', 'start', 'end', 'runs', 'jitter', 'overlap', 'missed', 'priority', 'retry', 'backoff', 'timeout', 'group', 'callback', 'headers'];
const KEYS: Record<string, readonly string[]> = {
  enqueue: JOB,
  enqueue_many: ['jobs'],
  dequeue: ['topic', 'id'],
  cancel_group: ['group'],
  reschedule: ['topic', 'id', 'process_in', 'process_at'],
  get: ['topic', 'id'],
  every: ['interval', ...SCHEDULE],
  cron: ['rule', 'zone', ...SCHEDULE],
  get_schedule: ['name'],
  remove_schedule: ['name'],
  pause_schedule: ['name'],
  resume_schedule: ['name'],
  run_schedule: ['name'],
  next: ['name', 'rule', 'zone', 'interval', 'from', 'from_at', 'count'],
  together: ['steps'],
  work: ['options', 'handlers'],
  job: [],
  signal: ['name'],
  wait: ['name'],
  wait_cancelled: ['reason'],
  stop: [],
  fail: ['text'],
  retry_in: ['delay', 'text'],
  dead: ['reason'],
};
const MOMENTS = ['process_at', 'start', 'end', 'from'];

function checkKnown(what: string, object: object, known: readonly string[]): void {
  for (const key of Object.keys(object)) assert.ok(known.includes(key), `${what}: the runner does not know ${key}`);
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** What a handler has besides the verbs. */
interface Inside {
  readonly job: Job;
  readonly signals: Signals;
  readonly stop: () => void;
}

class Signals {
  private readonly seen = new Map<string, {promise: Promise<void>; resolve: () => void}>();

  of(name: string): {promise: Promise<void>; resolve: () => void} {
    let signal = this.seen.get(name);
    if (signal === undefined) {
      let resolve = (): void => {};
      const promise = new Promise<void>((done) => (resolve = done));
      signal = {promise, resolve};
      this.seen.set(name, signal);
    }
    return signal;
  }
}

class Runner {
  private readonly saved = new Map<string, unknown>();

  constructor(private readonly clients: ReadonlyMap<string, Client>) {}

  async steps(steps: Step[], inside?: Inside): Promise<void> {
    for (const step of steps) await this.step(step, inside);
  }

  private async step(step: Step, inside?: Inside): Promise<void> {
    const verb = step['do'] as string;
    assert.ok(KEYS[verb] !== undefined, `the runner does not know the step ${verb}`);
    checkKnown(verb, step, [...COMMON, ...KEYS[verb]!]);
    const client = this.clients.get(step['client'] ?? '')!;
    assert.ok(client !== undefined, `there is no client ${String(step['client'])}`);
    if (['fail', 'retry_in', 'dead'].includes(verb)) throw this.failure(step);
    let result: unknown;
    try {
      result = await this.carryOut(verb, step, client, inside);
    } catch (problem) {
      if (step['error'] === undefined || !(problem instanceof DelayqError)) throw problem;
      assert.equal(problem.code, step['error'], `${JSON.stringify(step)}: ${problem.message}`);
      this.checkMessage(step, problem);
      return;
    }
    assert.equal(step['error'], undefined, `${JSON.stringify(step)} succeeded`);
    if ('result' in step) this.match(step['result'], result, JSON.stringify(step));
    if ('save' in step) this.saved.set(step['save'], result);
  }

  private checkMessage(step: Step, problem: DelayqError): void {
    const wanted = step['message'] as string | undefined;
    // A name of an option is in the language's spelling.
    if (wanted !== undefined) assert.ok([wanted, camel(wanted)].some((text) => problem.message.includes(text)), `${problem.message} has no ${wanted}`);
    if ('retryable' in step) assert.equal(problem.retryable, step['retryable']);
  }

  private failure(step: Step): Error {
    const text = this.value(step['text']);
    if (step['do'] === 'fail') return new Error(text);
    if (step['do'] === 'dead') return new Dead(this.value(step['reason']));
    return text === undefined ? new RetryIn(step['delay']) : new RetryIn(step['delay'], text);
  }

  /** A special value as what it stands for. */
  private value(value: Json): Json {
    if (typeof value === 'string' && value.startsWith('$')) {
      assert.ok(this.saved.has(value.slice(1)), `nothing was saved as ${value}`);
      return this.saved.get(value.slice(1));
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    if ('base64' in value) return Buffer.from(value.base64, 'base64');
    if ('repeat' in value) return value.repeat.repeat(value.times);
    if ('json' in value) return value.json;
    throw new Error(`the runner does not know the value ${JSON.stringify(value)}`);
  }

  private options(step: Step, among: readonly string[]): Json {
    const options: Json = {};
    for (const key of among) {
      if (!(key in step)) continue;
      const value = key === 'headers' ? Object.fromEntries(Object.entries(step[key]).map(([name, text]) => [name, this.value(text)])) : this.value(step[key]);
      options[camel(key)] = MOMENTS.includes(key) ? Date.now() + value : value;
    }
    return options;
  }

  private carryOut(verb: string, step: Step, client: Client, inside?: Inside): Promise<unknown> | unknown {
    const word = (key: string): Json => this.value(step[key]);
    switch (verb) {
      case 'enqueue':
        return client.enqueue(word('topic'), word('id'), word('payload'), this.options(step, JOB.slice(3)));
      case 'enqueue_many': {
        const jobs = step['jobs'].map((job: Step) => {
          checkKnown('a job', job, JOB);
          return this.options(job, JOB);
        });
        return client.enqueueMany(jobs).then((results) => results.map(({id, error}) => (error === null ? id : {error: error.code})));
      }
      case 'dequeue':
        return client.dequeue(word('topic'), word('id'));
      case 'cancel_group':
        return client.cancelGroup(word('group'));
      case 'reschedule':
        return client.reschedule(word('topic'), word('id'), this.options(step, ['process_in', 'process_at']));
      case 'get':
        return client.get(word('topic'), word('id'));
      case 'every':
        return client.every(word('name'), word('interval'), word('topic'), word('payload'), this.options(step, SCHEDULE.slice(3)));
      case 'cron':
        return client.cron(word('name'), word('rule'), word('topic'), word('payload'), this.options(step, ['zone', ...SCHEDULE.slice(3)]));
      case 'next': {
        const options = this.options(step, KEYS['next']!);
        const {fromAt, ...others} = options;
        return client.next(fromAt === undefined ? options : {...others, from: new Date(fromAt)});
      }
      case 'get_schedule':
        return client.getSchedule(word('name'));
      case 'remove_schedule':
        return client.removeSchedule(word('name'));
      case 'pause_schedule':
        return client.pauseSchedule(word('name'));
      case 'resume_schedule':
        return client.resumeSchedule(word('name'));
      case 'run_schedule':
        return client.runSchedule(word('name'));
      case 'together':
        return Promise.all(step['steps'].map((one: Step) => this.step(one, inside)));
      case 'work':
        return this.work(step, client);
      default:
        return this.insideStep(verb, step, inside!);
    }
  }

  private async insideStep(verb: string, step: Step, inside: Inside): Promise<unknown> {
    assert.ok(inside !== undefined, `${verb} is for handlers`);
    const {job, signals} = inside;
    if (verb === 'job') return {...job, leaseUntil: await job.leaseUntil()};
    if (verb === 'signal') return signals.of(step['name']).resolve();
    if (verb === 'wait') return signals.of(step['name']).promise;
    if (verb === 'stop') return inside.stop();
    const {signal} = job;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, {once: true}));
    assert.ok(signal.reason instanceof JobStopped);
    assert.equal(signal.reason.reason, step['reason']);
    return undefined;
  }

  private async work(step: Step, client: Client): Promise<void> {
    const {options = {}, handlers} = step;
    checkKnown('work', options, ['concurrency', 'lease', 'wait', 'grace']);
    const worker = new Worker(client, options);
    const signals = new Signals();
    const problems: unknown[] = [];
    let left = 0;
    for (const lists of Object.values<Step[][]>(handlers)) left += lists.length;
    const stop = (): void => void worker.stop();
    for (const [topic, lists] of Object.entries<Step[][]>(handlers)) {
      let runs = 0;
      worker.handle(topic, async (job) => {
        const list = lists[runs++];
        try {
          assert.ok(list !== undefined, `the handler of ${topic} ran ${runs} times`);
          const last = list[list.length - 1];
          const fails = last !== undefined && ['fail', 'retry_in', 'dead'].includes(last['do']);
          if (fails) checkKnown(last['do'], last, [...COMMON, ...KEYS[last['do']]!]);
          await this.steps(fails ? list.slice(0, -1) : list, {job, signals, stop});
          if (fails) throw this.failure(last);
        } catch (problem) {
          if (problem instanceof assert.AssertionError || problem instanceof DelayqError) problems.push(problem);
          throw problem;
        } finally {
          if (--left <= 0 || problems.length > 0) setImmediate(stop);
        }
      });
    }
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('the work did not end')), DEADLINE);
    });
    try {
      await Promise.race([worker.run(), late]);
    } finally {
      clearTimeout(timer);
    }
    if (problems.length > 0) throw problems[0];
    assert.ok(step['error'] !== undefined || left === 0, 'not all lists were carried out');
  }

  private match(expected: Json, actual: Json, where: string): void {
    if (expected === null) return assert.ok(actual === null || actual === undefined, `${where}: ${String(actual)}`);
    if (Array.isArray(expected)) {
      assert.equal(actual.length, expected.length, where);
      expected.forEach((one, index) => this.match(one, actual[index], where));
      return;
    }
    if (typeof expected === 'object') {
      if ('near' in expected) return assert.ok(Math.abs(actual.getTime() - Date.now() - expected.near) < NEAR, `${where}: ${String(actual)}`);
      if ('uuid' in expected) {
        assert.equal(expected.uuid, 7);
        return assert.match(actual, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, where);
      }
      if ('contains' in expected) return assert.ok(actual.includes(this.value(expected.contains)), `${where}: ${actual}`);
      if ('bytes_at_most' in expected) return assert.ok(Buffer.byteLength(actual) <= expected.bytes_at_most, `${where}: ${actual}`);
      if ('json' in expected) return assert.deepEqual(JSON.parse(String(actual)), expected.json, where);
      if ('base64' in expected || 'repeat' in expected) return this.match(this.value(expected), actual, where);
      for (const key of Object.keys(expected)) this.match(expected[key], key in actual ? actual[key] : actual[camel(key)], `${where} ${key}`);
      return;
    }
    const plain = this.value(expected);
    if (Buffer.isBuffer(actual)) return assert.ok(actual.equals(Buffer.from(plain)), `${where}: ${actual.toString().slice(0, 100)}`);
    assert.equal(actual, plain, where);
  }
}

function clientWith(server: string, options: Json): Client {
  checkKnown('a client', options, ['token', 'token_name', 'retry_for', 'timeout', 'connect_timeout', 'tls']);
  const own = Object.fromEntries(Object.entries(options).map(([key, value]) => [camel(key), value]));
  return new Client({server, logger: quiet, ...own});
}

for (const name of readdirSync(SPEC).sort()) {
  if (!name.endsWith('.json') || name === 'replies.json' || name === 'wire.json') continue;
  const file = JSON.parse(readFileSync(join(SPEC, name), 'utf8'));
  checkKnown(name, file, ['about', 'server', 'scenarios']);
  test(name, async (context) => {
    const server = await Server.start(context, file.server);
    for (const scenario of file.scenarios) {
      await context.test(scenario.name, async () => {
        checkKnown(scenario.name, scenario, ['name', 'clients', 'steps']);
        const clients = new Map([['', new Client({server: server.address, logger: quiet})]]);
        for (const [one, options] of Object.entries<Json>(scenario.clients ?? {})) clients.set(one, clientWith(server.address, options));
        try {
          await new Runner(clients).steps(scenario.steps);
        } finally {
          for (const client of clients.values()) await client.close();
        }
      });
    }
  });
}

test('replies.json', () => {
  const {replies} = JSON.parse(readFileSync(join(SPEC, 'replies.json'), 'utf8'));
  for (const expected of replies) {
    checkKnown('a reply', expected, ['line', 'code', 'message', 'retryable', 'retry_after']);
    const decoder = new Decoder();
    decoder.feed(Buffer.from(`${expected.line}\r\n`));
    const reply = decoder.next(false);
    assert.ok(reply instanceof ErrorReply);
    const {code, message, retryable, retryAfter} = reply.error;
    assert.deepEqual({code, message, retryable, retryAfter}, {code: expected.code, message: expected.message, retryable: expected.retryable, retryAfter: expected.retry_after}, expected.line);
    assert.deepEqual(errorOfLine(expected.line.slice(1)), reply.error);
  }
});

test('wire.json', async (context) => {
  const table = JSON.parse(readFileSync(join(SPEC, 'wire.json'), 'utf8'));
  checkKnown('wire.json', table, ['about', 'calls']);
  for (const call of table.calls) {
    await context.test(call.name, {timeout: 30_000}, async (one) => {
      checkKnown('a call', call, ['name', 'client', 'server', 'step', 'sent']);
      const peer = spawn('python3', ['-B', join(SPEC, 'wire.py'), call.name], {stdio: ['pipe', 'pipe', 'inherit']});
      one.after(() => peer.kill('SIGKILL'));
      let said = '';
      const ended = once(peer, 'close');
      const port = await new Promise<string>((resolve) => {
        peer.stdout.on('data', (text: Buffer) => {
          said += text.toString();
          if (said.includes('\n')) resolve(said.slice(0, said.indexOf('\n')));
        });
      });
      const client = clientWith(`127.0.0.1:${port}`, call.client ?? {});
      await new Runner(new Map([['', client]])).steps([call.step]);
      await client.close();
      peer.stdin.end();
      const [code] = await ended;
      assert.equal(code, 0, said);
    });
  }
});
