import {AsyncLocalStorage} from 'node:async_hooks';
import {Connection, type ConnectionSettings} from './connection';
import {consume, type ConsumedJob} from './consume';
import {DelayqError, invalid} from './errors';
import {JobInfo, scheduleOf, type DequeueResult, type JobState, type Occurrence, type Schedule, type ScheduledRun} from './job';
import {
  checkKeys,
  settingsOf,
  type CallSignal,
  type ClientOptions,
  type EnqueueOptions,
  type JobOptions,
  type ScheduleOptions,
  type WorkerOptions,
} from './options';
import {textOf, type Reply} from './resp';
import {
  addHeaders,
  show,
  toMillis,
  uuid7,
  wireCount,
  wireDuration,
  wireMoment,
  wirePayload,
  wireText,
  type Duration,
  type Headers,
  type Moment,
  type Payload,
  type Word,
} from './values';

/** One job of `enqueueMany`. */
export interface NewJob extends Omit<EnqueueOptions, 'signal'> {
  topic: string;
  /** Without one the library makes a UUID of version 7. */
  id?: string | number | null;
  payload: Payload;
}

/** What became of one job of `enqueueMany`: its id, or why it was not stored. */
export interface EnqueueResult {
  readonly id: string | null;
  readonly error: DelayqError | null;
}

/** Which occurrences `next` computes: those of a schedule, or those of a rule that is not stored. */
export interface NextOptions extends CallSignal {
  name?: string;
  /** A cron rule. */
  rule?: string;
  zone?: string;
  interval?: Duration;
  /** Default: now. */
  from?: Moment;
  /** Default 5, at most 1,000. */
  count?: number;
}

export type NewTime = ({processIn: Duration; processAt?: undefined} | {processAt: Moment; processIn?: undefined}) & CallSignal;

/** The headers of the job whose handler is running. */
export const runningHeaders = new AsyncLocalStorage<Headers | undefined>();

const CONFLICTS: Readonly<Record<string, string>> = {replace: 'REPLACE', keep: 'KEEP', reject: ''};
const OVERLAPS = ['allow', 'skip', 'replace'];
const MISSED = ['one', 'skip', 'all'];

/**
 * Stores, looks up and cancels jobs. One client is enough for a process: calls at the same time share its connection and
 * join into batches. It connects when it is first used, and again when the connection was lost.
 */
export class Client {
  private readonly connection: Connection;
  /** @internal */
  readonly settings: ConnectionSettings;

  constructor(options: ClientOptions = {}) {
    this.settings = settingsOf(options);
    this.connection = new Connection(this.settings);
  }

  /**
   * Stores a job, and returns its id. Without an id the library makes one, so a job can be sent again after a lost
   * connection. The answer means that the job is on disk.
   */
  enqueue(topic: string, id: string | number | null | undefined, payload: Payload, options: EnqueueOptions = {}): Promise<string> {
    let words: Word[];
    let name: string;
    let safe = true;
    try {
      const isMade = id === undefined || id === null || id === '';
      name = isMade ? uuid7() : wireText('id', id);
      // An id that was made here can only be there already if this call is sent again: the job may even run by now.
      words = pushWords(topic, name, payload, options, isMade ? 'KEEP' : 'REPLACE');
      // The answer to a second one would be about the first.
      safe = isMade || options.onConflict !== 'reject';
    } catch (problem) {
      return Promise.reject(problem);
    }
    return this.connection.call(words, {convert: () => name, safe, signal: options.signal});
  }

  /** Stores many jobs in one batch. An error of one job is in its result; the others are stored. */
  async enqueueMany(jobs: Iterable<NewJob>, options: CallSignal = {}): Promise<EnqueueResult[]> {
    const results: EnqueueResult[] = [];
    const most = Math.max(1, Math.floor(this.settings.maxPending / 2));
    let open: Array<Promise<EnqueueResult>> = [];
    for (const job of jobs) {
      open.push(this.enqueueOne(job));
      if (open.length < most) continue;
      for (const result of await orAborted(Promise.all(open), options.signal)) results.push(result);
      open = [];
    }
    for (const result of await orAborted(Promise.all(open), options.signal)) results.push(result);
    return results;
  }

  /** Cancels a job that waits. One that runs is told, and will not be tried again. */
  dequeue(topic: string, id: string | number, options: CallSignal = {}): Promise<DequeueResult> {
    return this.send(() => ['CANCEL', wireText('topic', topic), wireText('id', id)], (reply) => wordOf(reply) as DequeueResult, false, options);
  }

  /** Cancels all jobs of a group, in all topics. Returns how many. */
  cancelGroup(group: string, options: CallSignal = {}): Promise<number> {
    return this.send(() => ['CANCELGROUP', wireText('group', group)], numberOf, false, options);
  }

  /** Moves a job that waits, or is dead, to another time. */
  reschedule(topic: string, id: string | number, time: NewTime): Promise<void> {
    return this.send(() => rescheduleWords(topic, id, time), nothing, false, time);
  }

  /** Looks a job up; null if there is none. */
  get(topic: string, id: string | number, options: CallSignal = {}): Promise<JobInfo | null> {
    const convert = (reply: Reply): JobInfo | null => (reply === null ? null : new JobInfo(fieldsOf(reply)));
    return this.send(() => ['GET', wireText('topic', topic), wireText('id', id)], convert, true, options);
  }

  /** Makes a job at every interval. The same name again changes the schedule; it can be set at each start of a program. */
  every(name: string, interval: Duration, topic: string, payload: Payload, options: ScheduleOptions = {}): Promise<Schedule> {
    return this.send(
      () => scheduleWords(['SCHEDULE', 'SET', wireText('name', name), 'EVERY', wireDuration('interval', interval)], topic, payload, options),
      toSchedule,
      true,
      options,
    );
  }

  /** Makes a job by a cron rule, such as `'0 2 * * *'`, in a time zone; default `UTC`. */
  cron(name: string, rule: string, topic: string, payload: Payload, options: ScheduleOptions & {zone?: string} = {}): Promise<Schedule> {
    const {zone, ...others} = options;
    return this.send(
      () => {
        const words = ['SCHEDULE', 'SET', wireText('name', name), 'CRON', wireText('rule', rule)];
        if (zone !== undefined) words.push('ZONE', wireText('zone', zone));
        return scheduleWords(words, topic, payload, others);
      },
      toSchedule,
      true,
      options,
    );
  }

  getSchedule(name: string, options: CallSignal = {}): Promise<Schedule | null> {
    const convert = (reply: Reply): Schedule | null => (reply === null ? null : toSchedule(reply));
    return this.send(() => ['SCHEDULE', 'GET', wireText('name', name)], convert, true, options);
  }

  /** The jobs that it has made stay. */
  removeSchedule(name: string, options: CallSignal = {}): Promise<void> {
    return this.send(() => ['SCHEDULE', 'DEL', wireText('name', name)], nothing, false, options);
  }

  pauseSchedule(name: string, options: CallSignal = {}): Promise<Schedule> {
    return this.send(() => ['SCHEDULE', 'PAUSE', wireText('name', name)], toSchedule, true, options);
  }

  resumeSchedule(name: string, options: CallSignal = {}): Promise<Schedule> {
    return this.send(() => ['SCHEDULE', 'RESUME', wireText('name', name)], toSchedule, true, options);
  }

  /** Makes a job now, in addition to the occurrences. */
  runSchedule(name: string, options: CallSignal = {}): Promise<ScheduledRun> {
    const convert = (reply: Reply): ScheduledRun => {
      const fields = fieldsOf(reply);
      return {
        topic: textOf(fields.get('topic')),
        id: textOf(fields.get('id')),
        state: textOf(fields.get('state')) as JobState,
        dueAt: new Date(Number(fields.get('due_ms'))),
      };
    };
    return this.send(() => ['SCHEDULE', 'RUN', wireText('name', name)], convert, false, options);
  }

  /** The next occurrences of a schedule (`name`), or of a rule (`rule` with `zone`, or `interval`) that is not stored. */
  next(options: NextOptions): Promise<Occurrence[]> {
    const convert = (reply: Reply): Occurrence[] =>
      listOf(reply).map((item) => {
        const [at, local] = listOf(item);
        return {at: new Date(Number(at)), local: textOf(local)};
      });
    return this.send(() => nextWords(options), convert, true, options);
  }

  /**
   * Takes the jobs of a topic one after the other:
   *
   *     for await (const job of client.jobs('mail')) await send(job.json());
   *
   * A job is acked when the loop asks for the next one, or by `job.ack()`. Leaving the loop, by an exception, too, fails
   * the job that is not acked, so that it is tried again. The lease is extended meanwhile. For several jobs at once, use a `Worker`.
   */
  jobs(topic: string | readonly string[], options: Omit<WorkerOptions, 'concurrency'> & CallSignal = {}): AsyncIterableIterator<ConsumedJob> {
    return consume(this, topic, options);
  }

  /** Waits for the answers that are still to come, and closes the connection. */
  async close(): Promise<void> {
    await this.connection.idle();
    this.connection.close();
  }

  private async enqueueOne(job: NewJob): Promise<EnqueueResult> {
    try {
      const {topic, id, payload, ...options} = job;
      return {id: await this.enqueue(topic, id, payload, options), error: null};
    } catch (error) {
      if (error instanceof DelayqError) return {id: null, error};
      throw error;
    }
  }

  private send<T>(words: () => Word[], convert: (reply: Reply) => T, safe: boolean, options: CallSignal): Promise<T> {
    try {
      return this.connection.call(words(), {convert, raw: true, safe, signal: options.signal});
    } catch (problem) {
      return Promise.reject(problem);
    }
  }
}

function nothing(): void {}

/** Rejects when the signal is aborted, if that is earlier. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  promise.catch(nothing); // Nobody may be left to see it.
  signal.throwIfAborted();
  let abort = nothing;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, {once: true});
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function unexpected(what: string): DelayqError {
  return new DelayqError('internal', `the server sent something that is no ${what}`);
}

function fieldsOf(reply: Reply): ReadonlyMap<string, Reply> {
  if (reply instanceof Map) return reply;
  throw unexpected('map');
}

function listOf(reply: Reply): Reply[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected('list');
}

function wordOf(reply: Reply): string {
  if (typeof reply === 'string' || reply instanceof Buffer) return reply.toString();
  throw unexpected('text');
}

function numberOf(reply: Reply): number {
  if (typeof reply === 'number') return reply;
  throw unexpected('number');
}

function toSchedule(reply: Reply): Schedule {
  return scheduleOf(fieldsOf(reply));
}

function choice(field: string, value: string, among: readonly string[]): string {
  if (among.includes(value)) return value;
  throw invalid(field, `${show(value)} is not one of ${among.join(', ')}`);
}

/** The option `key` in the words of the server. Returns false if it is not one that all jobs have. */
function addJobOption(words: Word[], key: string, value: unknown): boolean {
  switch (key) {
    case 'priority':
      words.push('PRI', wireCount(key, value));
      return true;
    case 'retry':
      words.push('ATTEMPTS', wireCount(key, value));
      return true;
    case 'backoff':
      words.push('BACKOFF', wireText(key, value));
      return true;
    case 'timeout':
      words.push('LEASE', wireDuration(key, value as Duration));
      return true;
    case 'group':
      words.push('GROUP', wireText(key, value));
      return true;
    case 'callback':
      words.push('CALLBACK', wireText(key, value));
      return true;
    case 'headers':
      addHeaders(words, value);
      return true;
    default:
      return key === 'signal';
  }
}

const JOB_KEYS: readonly (keyof JobOptions)[] = ['priority', 'retry', 'backoff', 'timeout', 'group', 'callback', 'headers'];

function pushWords(topic: string, id: string, payload: Payload, options: EnqueueOptions, usual: string): Word[] {
  const words: Word[] = ['PUSH', wireText('topic', topic), '0', wirePayload(payload), 'ID', id];
  let conflict = usual;
  for (const key in options) {
    const value = options[key as keyof EnqueueOptions];
    if (value === undefined) continue;
    switch (key) {
      case 'processIn':
        if (options.processAt !== undefined) throw invalid('processAt', 'give either processIn or processAt');
        words[2] = wireDuration(key, value as Duration);
        break;
      case 'processAt':
        words.push('AT', wireMoment(key, value as Moment));
        break;
      case 'onConflict':
        choice(key, value as string, Object.keys(CONFLICTS));
        conflict = CONFLICTS[value as string]!;
        break;
      default:
        if (!addJobOption(words, key, value)) checkKeys('enqueue', {[key]: value}, ['processIn', 'processAt', 'onConflict', ...JOB_KEYS, 'signal']);
    }
  }
  if (conflict !== '') words.push(conflict);
  const trace = runningHeaders.getStore();
  if (trace !== undefined) addTrace(words, trace, options.headers);
  return words;
}

/** Hands the trace context of the running job on, unless the caller has given one. */
function addTrace(words: Word[], running: Headers, given: Headers | undefined): void {
  const names = Object.keys(given ?? {}).map((name) => name.toLowerCase());
  if (names.includes('traceparent')) return;
  for (const [name, value] of Object.entries(running)) {
    const lower = name.toLowerCase();
    if (lower === 'traceparent' || (lower === 'tracestate' && !names.includes('tracestate'))) words.push('HEADER', name, value);
  }
}

function rescheduleWords(topic: string, id: string | number, time: NewTime): Word[] {
  checkKeys('reschedule', time, ['processIn', 'processAt', 'signal']);
  const words = ['RESCHEDULE', wireText('topic', topic), wireText('id', id)];
  const {processIn, processAt} = time;
  if (processIn !== undefined && processAt !== undefined) throw invalid('processAt', 'give either processIn or processAt');
  if (processIn !== undefined) return [...words, String(toMillis('processIn', processIn)) + 'ms'];
  if (processAt !== undefined) return [...words, 'AT', wireMoment('processAt', processAt)];
  throw invalid('processIn', 'give processIn or processAt');
}

function scheduleWords(rule: Word[], topic: string, payload: Payload, options: ScheduleOptions): Word[] {
  const words: Word[] = [...rule, 'TOPIC', wireText('topic', topic), 'BODY', wirePayload(payload)];
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (key === 'start' || key === 'end') words.push(key.toUpperCase(), wireMoment(key, value as Moment));
    else if (key === 'runs') words.push('RUNS', wireCount(key, value));
    else if (key === 'jitter') words.push('JITTER', wireDuration(key, value as Duration));
    else if (key === 'overlap') words.push('OVERLAP', choice(key, value as string, OVERLAPS));
    else if (key === 'missed') words.push('MISSED', choice(key, value as string, MISSED));
    else if (!addJobOption(words, key, value)) {
      checkKeys('a schedule', {[key]: value}, ['start', 'end', 'runs', 'jitter', 'overlap', 'missed', ...JOB_KEYS, 'signal']);
    }
  }
  return words;
}

function nextWords(options: NextOptions): Word[] {
  const {name, rule, zone, interval, from, count} = options;
  checkKeys('next', options, ['name', 'rule', 'zone', 'interval', 'from', 'count', 'signal']);
  if ([name, rule, interval].filter((value) => value !== undefined).length !== 1) throw invalid('name', 'give one of name, rule and interval');
  const words: Word[] = ['SCHEDULE', 'NEXT'];
  if (name !== undefined) words.push('NAME', wireText('name', name));
  if (rule !== undefined) words.push('CRON', wireText('rule', rule));
  if (zone !== undefined) words.push('ZONE', wireText('zone', zone));
  if (interval !== undefined) words.push('EVERY', wireDuration('interval', interval));
  if (from !== undefined) words.push('FROM', wireMoment('from', from));
  if (count !== undefined) words.push('COUNT', wireCount('count', count));
  return words;
}
