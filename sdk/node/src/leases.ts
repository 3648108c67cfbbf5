import {performance} from 'node:perf_hooks';
import {Connection, type ConnectionSettings} from './connection';
import {Dead, DelayqError, reasonOf, RetryIn} from './errors';
import type {Job} from './job';
import type {Reply} from './resp';
import type {Word} from './values';

/** A job that this worker has from the server. Moments are those of `performance.now()`. */
export interface Taken {
  readonly job: Job;
  readonly lease: string;
  readonly takenAt: number;
  expiresAt: number;
  extendAt: number;
  extending: boolean;
  /** It is not ours any more, or was given back: nothing is sent for it. */
  gone: boolean;
}

interface Ack {
  readonly taken: Taken;
  readonly reported: () => void;
}

const MOST_ACKS = 500;
/** How long a handler may run before its lease is asked for, where the job or its topic says it; far less than the shortest lease. */
const LEARN_AFTER = 20;
/** For how long the answer is waited for. */
const LEARN_FOR = 60_000;

/**
 * Keeps the leases of a worker's jobs, and reports what became of the jobs. It has a connection of its own, since a waiting
 * pop would hold reports up. A report that got lost is sent again: a lease can be used up only once.
 */
export class Leases {
  /** Whether the server knows RELEASE; undefined: not asked yet. */
  canRelease: boolean | undefined;
  private readonly connection: Connection;
  private readonly kept = new Set<Taken>();
  private acks: Ack[] = [];
  private acking = false;
  private ackPlanned = false;
  private unreported = 0;
  private timer: NodeJS.Timeout | undefined;
  private nextAt = Infinity;

  /** `lease`: for how long a job is extended; undefined: as the job or its topic says. */
  constructor(
    private readonly settings: ConnectionSettings,
    private readonly lease: number | undefined,
    private readonly onReported: () => void,
  ) {
    this.connection = new Connection(settings, () => this.extendAllNow());
  }

  /** How many results the server has not confirmed. */
  get open(): number {
    return this.unreported;
  }

  /** Asks what the server can do. */
  async greet(): Promise<void> {
    const convert = (reply: Reply): boolean => Array.isArray(reply) && Array.isArray(reply[0]);
    try {
      const knows = await this.connection.call(['COMMAND', 'INFO', 'RELEASE'], {convert, safe: true});
      this.canRelease ??= knows;
    } catch (problem) {
      this.settings.logger.debug(`delayq: COMMAND INFO: ${String(problem)}`);
    }
  }

  /** Takes a job into care. */
  keep(taken: Taken): void {
    if (this.lease !== undefined) {
      this.setEnd(taken, taken.takenAt, this.lease);
      taken.job.extended(Date.now() + this.lease);
    } else {
      taken.extendAt = taken.takenAt + LEARN_AFTER;
      taken.expiresAt = taken.takenAt + LEARN_FOR;
      taken.job.learn = () => {
        if (!taken.extending && !taken.gone) this.extend(taken);
      };
    }
    this.kept.add(taken);
    this.plan(taken.extendAt);
  }

  /** The job has ended, or is given back: its lease is no longer extended. */
  forget(taken: Taken): void {
    this.kept.delete(taken);
  }

  /** The lease is not ours any more. */
  lose(taken: Taken): void {
    if (taken.gone) return;
    taken.gone = true;
    this.forget(taken);
    this.settings.logger.warn(`delayq: the lease of ${nameOf(taken)} is lost`);
    taken.job.tell('lease_lost');
    taken.job.extended(Date.now());
  }

  /** After a lost connection: the server may have been restarted meanwhile, so all leases are looked at. */
  extendAllNow(): void {
    const now = performance.now();
    for (const taken of this.kept) taken.extendAt = now;
    if (this.kept.size > 0) this.plan(now);
  }

  ack(taken: Taken): Promise<void> {
    return new Promise((resolve) => {
      ++this.unreported;
      this.acks.push({taken, reported: resolve});
      this.planAcks();
    });
  }

  nack(taken: Taken, error: unknown): Promise<void> {
    const words: Word[] = ['NACK', taken.lease];
    if (error instanceof RetryIn) words.push('DELAY', `${error.delay}ms`);
    words.push('REASON', reasonOf(error));
    if (error instanceof Dead) words.push('DEAD');
    return this.report(words, [taken]);
  }

  /** Gives jobs back; they are ready at once. */
  async release(takens: readonly Taken[]): Promise<void> {
    if (takens.length === 0) return;
    for (const taken of takens) {
      taken.gone = true;
      this.forget(taken);
    }
    // Until it is done it counts as open, even between the two ways.
    ++this.unreported;
    for (let i = 0; i < takens.length && this.canRelease !== false; i += MOST_ACKS) await this.releaseSome(takens.slice(i, i + MOST_ACKS));
    if (!this.canRelease) await Promise.all(takens.map((taken) => this.report(['NACK', taken.lease, 'DELAY', '0', 'REASON', 'worker stopped'], [taken])));
    this.settle(1);
  }

  /** Resolves when all results have reached the server, or when there is no hope; then closes the connection. */
  async close(): Promise<void> {
    clearTimeout(this.timer);
    this.kept.clear();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(this.settings.retryFor, this.settings.timeout));
    });
    await Promise.race([this.allReported(), late]);
    clearTimeout(timer);
    if (this.unreported > 0) {
      this.settings.logger.warn(`delayq: ${this.unreported} results did not reach the server: these jobs will be handed out again`);
    }
    this.connection.close();
  }

  private async allReported(): Promise<void> {
    while (this.unreported > 0) {
      await this.connection.idle();
      await new Promise(setImmediate);
    }
  }

  private planAcks(): void {
    if (this.acking || this.ackPlanned) return;
    this.ackPlanned = true;
    setImmediate(() => {
      this.ackPlanned = false;
      void this.sendAcks();
    });
  }

  /** One batch at a time; what ends meanwhile is in the next one. */
  private async sendAcks(): Promise<void> {
    if (this.acking) return;
    this.acking = true;
    while (this.acks.length > 0) {
      const batch = this.acks.splice(0, MOST_ACKS);
      const words = ['ACK', ...batch.map((ack) => ack.taken.lease)];
      try {
        const current = await this.connection.call(words, {convert: Number, safe: true, until: this.until(batch.map((ack) => ack.taken))});
        if (current < batch.length) this.settings.logger.info(`delayq: ${batch.length - current} of ${batch.length} acked jobs were not reserved for this worker any more`);
      } catch (problem) {
        this.settings.logger.warn(`delayq: ${batch.length} jobs could not be acked: ${String(problem)}`);
      }
      for (const ack of batch) ack.reported();
      this.settle(batch.length);
    }
    this.acking = false;
  }

  private async releaseSome(takens: readonly Taken[]): Promise<void> {
    try {
      const words = ['RELEASE', ...takens.map((taken) => taken.lease)];
      await this.connection.call(words, {convert: () => undefined, safe: true, until: this.until(takens)});
      this.canRelease = true;
    } catch (problem) {
      if (problem instanceof DelayqError && problem.code === 'invalid' && problem.message.startsWith('unknown command')) {
        this.canRelease = false;
        return;
      }
      this.canRelease ??= true;
      this.settings.logger.warn(`delayq: ${takens.length} jobs could not be given back: ${String(problem)}`);
    }
  }

  private async report(words: readonly Word[], takens: readonly Taken[]): Promise<void> {
    this.unreported += takens.length;
    try {
      await this.connection.call(words, {convert: () => undefined, safe: true, until: this.until(takens)});
    } catch (problem) {
      const stale = problem instanceof DelayqError && problem.code === 'stale_lease';
      const text = `delayq: ${String(words[0])} of ${nameOf(takens[0]!)}: ${String(problem)}`;
      if (stale) this.settings.logger.info(text);
      else this.settings.logger.warn(text);
    }
    this.settle(takens.length);
  }

  private settle(count: number): void {
    this.unreported -= count;
    this.onReported();
  }

  /** There is no use in a report after the lease has ended, except that it might not have. */
  private until(takens: readonly Taken[]): number {
    return takens.reduce((latest, taken) => Math.max(latest, taken.expiresAt), performance.now() + this.settings.retryFor);
  }

  /** Extends at `at`, by `performance.now()`, or earlier. */
  private plan(at: number): void {
    if (at >= this.nextAt) return;
    this.nextAt = at;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), Math.max(0, Math.min(at - performance.now(), 2 ** 31 - 1)));
  }

  private look(): void {
    const now = performance.now();
    let next = Infinity;
    for (const taken of this.kept) {
      if (now >= taken.expiresAt) {
        this.lose(taken);
        continue;
      }
      if (!taken.extending && now >= taken.extendAt) this.extend(taken);
      next = Math.min(next, taken.expiresAt, taken.extending ? Infinity : taken.extendAt);
    }
    this.nextAt = Infinity;
    if (next < Infinity) this.plan(next);
  }

  /** Extends a lease, and looks whether the job was cancelled meanwhile. The first time it only learns how long the lease is. */
  private extend(taken: Taken): void {
    taken.extending = true;
    const began = performance.now();
    const {topic, id} = taken.job;
    const words = this.lease === undefined ? ['EXTEND', taken.lease] : ['EXTEND', taken.lease, `${this.lease}ms`];
    const isCancelled = (reply: Reply): boolean => reply instanceof Map && reply.has('cancel_requested');
    const extended = this.connection.call(words, {convert: Number, safe: true, until: taken.expiresAt});
    const learns = !taken.job.isLeaseKnown;
    const cancelled = learns ? Promise.resolve(false) : this.connection.call(['GET', topic, id], {convert: isCancelled, raw: true, safe: true, until: taken.expiresAt});
    extended.then(
      (end) => {
        this.extended(taken, began, end);
        this.plan(taken.extendAt);
      },
      (problem: unknown) => this.notExtended(taken, problem),
    );
    // The result of EXTEND comes first: a job with a lost lease is another one.
    cancelled.then(
      (isSo) => {
        if (isSo && this.kept.has(taken)) taken.job.tell('cancelled');
      },
      (problem: unknown) => this.settings.logger.debug(`delayq: GET of ${nameOf(taken)}: ${String(problem)}`),
    );
  }

  private extended(taken: Taken, began: number, end: number): void {
    taken.extending = false;
    taken.job.extended(end);
    // Where the length is not known, clocks are compared. The server's is not before the moment at which the job was due.
    const length = this.lease ?? end - Math.max(Date.now() - (performance.now() - began), taken.job.dueAt.getTime());
    this.setEnd(taken, began, Math.max(length, 100));
  }

  private notExtended(taken: Taken, problem: unknown): void {
    taken.extending = false;
    if (!this.kept.has(taken)) return;
    if (problem instanceof DelayqError && (problem.code === 'stale_lease' || problem.code === 'invalid')) return this.lose(taken);
    this.settings.logger.debug(`delayq: EXTEND of ${nameOf(taken)}: ${String(problem)}`);
    taken.extendAt = performance.now() + 100;
    this.plan(taken.extendAt);
  }

  private setEnd(taken: Taken, from: number, length: number): void {
    taken.expiresAt = from + length;
    taken.extendAt = from + length / 3;
  }
}

/** How logs name a job. */
export function nameOf(taken: Taken): string {
  return `job ${JSON.stringify(taken.job.id)} of ${taken.job.topic}`;
}
