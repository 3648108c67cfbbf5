import type {Client} from './client';
import type {Job} from './job';
import type {CallSignal, WorkerOptions} from './options';
import {Worker} from './worker';

/** A job of `client.jobs(topic)`. */
export type ConsumedJob = Job & {
  /** The job is done. Resolves when the server knows. */
  ack(): Promise<void>;
  /** The attempt failed: with a `RetryIn` or a `Dead` as they say, otherwise the job is tried again after its backoff. */
  nack(error?: unknown): Promise<void>;
};

interface Item {
  readonly job: ConsumedJob;
  settled: boolean;
  end(error: unknown, failed: boolean): Promise<void>;
}

/** A worker whose handler is the body of a loop. */
export async function* consume(
  client: Client,
  topic: string | readonly string[],
  options: Omit<WorkerOptions, 'concurrency'> & CallSignal,
): AsyncIterableIterator<ConsumedJob> {
  const {signal, ...others} = options;
  const worker = new Worker(client, {...others, concurrency: 1});
  const items: Item[] = [];
  const reports = new Map<Job, () => void>();
  let wake = (): void => {};
  for (const name of typeof topic === 'string' ? [topic] : topic) {
    worker.handle(name, (job) => {
      return new Promise<void>((resolve, reject) => {
        items.push(itemOf(job, resolve, reject, reports));
        wake();
      });
    });
  }
  let ended = false;
  const running = worker.runReporting(signal === undefined ? {} : {signal}, (job) => reports.get(job)?.()).finally(() => {
    ended = true;
    wake();
  });
  running.catch(() => {}); // Awaited below, but perhaps only after the loop's body.
  let current: Item | undefined;
  try {
    for (;;) {
      current = items.shift();
      if (current === undefined) {
        if (ended) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      yield current.job;
      if (!current.settled) void current.end(undefined, false);
    }
    await running;
  } finally {
    if (current !== undefined && !current.settled) void current.end(new Error('the loop ended before the job was acked'), true);
    await worker.stop();
  }
}

function itemOf(job: Job, resolve: () => void, reject: (error: unknown) => void, reports: Map<Job, () => void>): Item {
  const item: Item = {
    job: Object.assign(job, {
      ack: () => item.end(undefined, false),
      nack: (error: unknown = new Error('the job was nacked')) => item.end(error, true),
    }),
    settled: false,
    end: (error, failed) => {
      if (item.settled) return Promise.resolve();
      item.settled = true;
      return new Promise((done) => {
        reports.set(job, () => {
          reports.delete(job);
          done();
        });
        if (failed) reject(error);
        else resolve();
      });
    },
  };
  return item;
}
