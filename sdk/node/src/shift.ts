import {performance} from 'node:perf_hooks';
import {runningHeaders} from './client';
import {backoff, Connection, type ConnectionSettings} from './connection';
import {DelayqError, reasonOf} from './errors';
import {bytesOf, headersOf, Job} from './job';
import {Leases, nameOf, type Taken} from './leases';
import type {WorkerSettings} from './options';
import {textOf, type Reply} from './resp';
import type {Headers} from './values';

const MOST_POPPED = 1000;
/** How long the server may take to close the connection of a pop that was given up. */
const LONGEST_FINISH = 1000;
/** How long handlers may go on after they were told that the worker stops. */
const LAST_CHANCE = 1000;
/** As many jobs are taken in advance as handlers begin in this time. */
const IN_ADVANCE = 20;
/** How long a handler takes, as long as nothing is known. */
const USUAL_RUN = 1000;
/** A job in advance that was not begun after this time is given back. */
const LONGEST_HOLD = 200;
/** A pop that fails with one of these would fail again. */
const FATAL: ReadonlySet<string> = new Set(['invalid', 'unauthorized', 'forbidden', 'too_large']);

const POP_OPTIONS: ReadonlySet<string> = new Set(['COUNT', 'WAIT', 'LEASE', 'AUTOACK', 'HEADERS']);

/** Whether a topic has the name of an option of POP, which knows its options by their names. */
export function isPopOption(topic: string): boolean {
  return POP_OPTIONS.has(topic.toUpperCase());
}

/** The work of a worker between `run()` and its end. */
export class Shift {
  private readonly popping: Connection;
  private readonly leases: Leases;
  /** Taken, but not begun. */
  private held: Taken[] = [];
  /** By topic and id. */
  private readonly running = new Map<string, Taken>();
  private stopping = false;
  private pops = 0;
  private problem: unknown;
  private waiters: Array<{condition: () => boolean; resolve: () => void}> = [];
  /** How many milliseconds a handler takes: a moving average. */
  private meanRun = USUAL_RUN;

  constructor(
    private readonly connection: ConnectionSettings,
    private readonly settings: WorkerSettings,
    private readonly topics: readonly string[],
    private readonly carryOut: (job: Job) => Promise<void>,
    private readonly reported: (job: Job) => void,
  ) {
    this.leases = new Leases(connection, settings.lease, () => this.changed());
    this.popping = new Connection(connection, () => this.leases.extendAllNow());
  }

  stop(): void {
    this.stopping = true;
    this.changed();
  }

  async run(): Promise<void> {
    const holds = setInterval(() => this.giveHeldBack(), LONGEST_HOLD / 2);
    void this.leases.greet();
    const taking = this.takeAll();
    await this.until(() => this.stopping);
    await this.popping.finish(LONGEST_FINISH);
    await taking;
    clearInterval(holds);
    const notBegun = this.leases.release(this.held.splice(0));
    await this.endHandlers();
    await notBegun;
    await this.leases.close();
    if (this.problem !== undefined) throw this.problem;
  }

  /** Something that `until` may wait for is different now. */
  private changed(): void {
    if (this.waiters.length === 0) return;
    const waiters = this.waiters;
    this.waiters = [];
    for (const waiter of waiters) {
      if (waiter.condition()) waiter.resolve();
      else this.waiters.push(waiter);
    }
  }

  /** Resolves when `condition` holds, or after `longest` milliseconds. */
  private async until(condition: () => boolean, longest = Infinity): Promise<void> {
    if (condition()) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      const waiter = {condition, resolve};
      this.waiters.push(waiter);
      if (longest === Infinity) return;
      timer = setTimeout(() => {
        this.waiters = this.waiters.filter((other) => other !== waiter);
        resolve();
      }, longest);
    });
    clearTimeout(timer);
  }

  private async endHandlers(): Promise<void> {
    const none = (): boolean => this.running.size === 0;
    await this.until(none, this.settings.grace);
    for (const taken of this.running.values()) taken.job.tell('stopping');
    await this.until(none, LAST_CHANCE);
    const left = [...this.running.values()].filter((taken) => !taken.gone);
    for (const taken of left) {
      this.connection.logger.warn(`delayq: ${nameOf(taken)} still runs although the worker stops; it is given back, and its result will be dropped`);
    }
    await this.leases.release(left);
  }

  private async takeAll(): Promise<void> {
    let failures = 0;
    while (!this.stopping) {
      const room = this.room();
      if (room <= 0) {
        await this.until(() => this.stopping || this.room() > 0);
        await new Promise(setImmediate); // Handlers that end in the same turn are counted.
        continue;
      }
      try {
        await this.take(Math.min(room, MOST_POPPED));
        failures = 0;
      } catch (problem) {
        if (this.stopping) return;
        if (problem instanceof DelayqError && FATAL.has(problem.code)) {
          this.problem = problem;
          return this.stop();
        }
        this.connection.logger.debug(`delayq: POP: ${String(problem)}`);
        const asked = problem instanceof DelayqError ? problem.retryAfter : null;
        await this.until(() => this.stopping, asked ?? backoff(failures++));
      }
    }
  }

  /** How many jobs may be taken now. A worker that has handlers to spare takes none in advance. */
  private room(): number {
    const {concurrency} = this.settings;
    if (this.leases.open > MOST_POPPED + 4 * concurrency) return 0;
    if (this.running.size < concurrency) return concurrency - this.running.size - this.held.length;
    const most = this.inAdvance();
    return 2 * this.held.length < most ? most - this.held.length : 0;
  }

  /**
   * While handlers are short, some jobs are taken in advance, so that a handler that ends does not wait for the next pop.
   * Other workers do not see these jobs, so they are few. Only if jobs can be given back: a nack would count as an attempt.
   */
  private inAdvance(): number {
    if (this.leases.canRelease !== true) return 0;
    const {concurrency} = this.settings;
    return Math.min(2 * concurrency, Math.floor((concurrency * IN_ADVANCE) / Math.max(this.meanRun, 0.1)));
  }

  /** The server prefers the first topic, so the order changes: none has to wait until the others are empty. */
  private nextTopics(): string[] {
    const from = this.pops++ % this.topics.length;
    const topics = [...this.topics.slice(from), ...this.topics.slice(0, from)];
    const odd = topics.findIndex(isPopOption);
    if (odd > 0) topics.unshift(...topics.splice(odd, 1)); // Only the first word of a POP is always a topic.
    return topics;
  }

  private async take(count: number): Promise<void> {
    const {lease, wait} = this.settings;
    const words = ['POP', ...this.nextTopics(), 'COUNT', String(count), 'WAIT', `${wait}ms`, 'HEADERS'];
    if (lease !== undefined) words.push('LEASE', `${lease}ms`);
    const takens = await this.popping.call(words, {convert: takenOf, raw: true, wait, until: Infinity});
    for (const taken of takens) {
      this.leases.keep(taken);
      this.hold(taken);
    }
    if (!this.stopping) this.begin();
  }

  private hold(taken: Taken): void {
    const key = keyOf(taken);
    // The server hands a job over only when no lease of it is current: what we have of it is old.
    const old = this.running.get(key);
    if (old !== undefined) this.leases.lose(old);
    for (const other of this.held.filter((one) => keyOf(one) === key)) this.leases.lose(other);
    this.held.push(taken);
  }

  /** Begins what is held while there is room. A job whose last handler still runs waits for the end of that. */
  private begin(): void {
    for (let i = 0; i < this.held.length && this.running.size < this.settings.concurrency; ) {
      const taken = this.held[i]!;
      if (!taken.gone && this.running.has(keyOf(taken))) {
        ++i;
        continue;
      }
      this.held.splice(i, 1);
      if (!taken.gone) void this.execute(taken);
    }
  }

  private giveHeldBack(): void {
    if (this.leases.canRelease !== true) return;
    const before = performance.now() - LONGEST_HOLD;
    const old = this.held.filter((taken) => taken.takenAt < before && !this.running.has(keyOf(taken)));
    if (old.length === 0) return;
    this.held = this.held.filter((taken) => !old.includes(taken));
    this.meanRun = USUAL_RUN; // They have become slow: no more in advance for a while.
    void this.leases.release(old);
  }

  private async execute(taken: Taken): Promise<void> {
    const key = keyOf(taken);
    const {job} = taken;
    this.running.set(key, taken);
    const began = performance.now();
    let failed = false;
    let error: unknown;
    try {
      await runningHeaders.run(traceOf(job.headers), () => this.carryOut(job));
    } catch (problem) {
      failed = true;
      error = problem;
    }
    this.meanRun += (performance.now() - began - this.meanRun) / 16;
    this.running.delete(key);
    this.leases.forget(taken);
    void this.report(taken, failed, error).then(() => this.reported(job));
    if (!this.stopping) this.begin();
    this.changed();
  }

  private async report(taken: Taken, failed: boolean, error: unknown): Promise<void> {
    if (taken.gone) {
      if (failed) this.connection.logger.info(`delayq: ${nameOf(taken)}, which is no longer reserved for this worker, failed: ${reasonOf(error)}`);
      return;
    }
    if (!failed) return this.leases.ack(taken);
    if (taken.job.told === 'stopping') return this.leases.release([taken]);
    this.connection.logger.warn(`delayq: ${nameOf(taken)} failed in attempt ${taken.job.attempt}: ${reasonOf(error)}`);
    return this.leases.nack(taken, error);
  }
}

function keyOf(taken: Taken): string {
  return `${taken.job.topic}/${taken.job.id}`;
}

/** Only what an enqueue hands on, so that there is nothing to do where there is no trace. */
function traceOf(headers: Headers): Headers | undefined {
  for (const name in headers) if (name.toLowerCase() === 'traceparent') return headers;
  return undefined;
}

/** The reply to POP ... HEADERS. */
function takenOf(reply: Reply): Taken[] {
  const now = performance.now();
  if (!Array.isArray(reply)) throw new DelayqError('unavailable', 'the answer to POP makes no sense');
  return reply.map((item) => {
    const [lease, topic, id, body, attempt, due, headers] = Array.isArray(item) && item.length >= 7 ? item : [];
    if (!(body instanceof Buffer) || typeof attempt !== 'number') throw new DelayqError('unavailable', 'the answer to POP makes no sense');
    const job = new Job(textOf(topic), textOf(id), bytesOf(body), Number(attempt), new Date(Number(due)), headersOf(headers));
    return {job, lease: textOf(lease), takenAt: now, expiresAt: now, extendAt: now, extending: false, gone: false};
  });
}
