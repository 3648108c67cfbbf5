import type {Client} from './client';
import {invalid} from './errors';
import type {Job} from './job';
import {workerSettingsOf, type CallSignal, type WorkerOptions, type WorkerSettings} from './options';
import {isPopOption, Shift} from './shift';
import {show} from './values';

/** Carries a job out. Returning acks the job; an exception fails it, and it is tried again. */
export type Handler = (job: Job) => unknown;
/** Runs around each handler, as in Koa: calls `next()` once. The first that was added is the outermost. */
export type Middleware = (job: Job, next: () => Promise<unknown>) => unknown;

/**
 * Takes jobs as they fall due and runs their handlers, until it is stopped. It extends leases while handlers run, acks,
 * retries, and goes on by itself after a lost connection.
 */
export class Worker {
  private readonly settings: WorkerSettings;
  private readonly handlers = new Map<string, Handler>();
  private readonly middleware: Middleware[] = [];
  private shift: Shift | undefined;
  private finished: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: Client,
    options: WorkerOptions = {},
  ) {
    this.settings = workerSettingsOf(options);
  }

  /** Registers the handler of a topic. */
  handle(topic: string, handler: Handler): this {
    if (typeof topic !== 'string') throw invalid('topic', `${show(topic)} is not a text`);
    if (typeof handler !== 'function') throw invalid('handler', `${show(handler)} is not a function`);
    this.handlers.set(topic, handler);
    return this;
  }

  use(middleware: Middleware): this {
    this.middleware.push(middleware);
    return this;
  }

  /**
   * Works until `stop()` is called or the signal is aborted. When it resolves, the results of all jobs have reached the
   * server. Rejects if the server refuses to hand out jobs at all: a wrong token, a malformed topic.
   */
  run(options: CallSignal = {}): Promise<void> {
    return this.runReporting(options, () => {});
  }

  /** Lets the handlers that run finish, for up to `grace`, and takes no more jobs. Resolves when `run()` has; do not await it in a handler. */
  async stop(): Promise<void> {
    this.shift?.stop();
    await this.finished.catch(() => {});
  }

  /** `reported` is called when the result of a job has reached the server. @internal */
  async runReporting(options: CallSignal, reported: (job: Job) => void): Promise<void> {
    if (this.shift !== undefined) throw invalid('run', 'this worker runs already');
    if (this.handlers.size === 0) throw invalid('handle', 'there is no handler: register one before run()');
    if ([...this.handlers.keys()].filter(isPopOption).length > 1) throw invalid('topic', 'at most one topic of a worker may have the name of an option of POP');
    const shift = new Shift(this.client.settings, this.settings, [...this.handlers.keys()], (job) => this.carryOut(job), reported);
    const stop = (): void => shift.stop();
    options.signal?.addEventListener('abort', stop, {once: true});
    if (options.signal?.aborted === true) shift.stop();
    this.shift = shift;
    this.finished = shift.run();
    try {
      await this.finished;
    } finally {
      this.shift = undefined;
      options.signal?.removeEventListener('abort', stop);
    }
  }

  private async carryOut(job: Job): Promise<void> {
    const handler = this.handlers.get(job.topic)!;
    const from = async (index: number): Promise<unknown> => {
      const middleware = this.middleware[index];
      return middleware === undefined ? handler(job) : middleware(job, () => from(index + 1));
    };
    await from(0);
  }
}
