import type {StopReason} from './errors';
import {JobStopped} from './errors';
import {textOf, type Reply} from './resp';
import {parseDuration} from './values';

export type JobState = 'delayed' | 'ready' | 'reserved' | 'done' | 'dead';
/** What `dequeue` found. `reserved`: the job runs now; its handler is told, and a failure is not retried. */
export type DequeueResult = 'cancelled' | 'reserved' | 'done' | 'dead' | 'unknown';

/** A payload, as text or as JSON. */
export class Body {
  constructor(readonly payload: Buffer) {}

  text(): string {
    return this.payload.toString();
  }
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  json<T = any>(): T {
    return JSON.parse(this.payload.toString()) as T;
  }
}

/** What `get` returns: a job as it is in the server. What it does not have is null. */
export class JobInfo extends Body {
  readonly topic: string;
  readonly id: string;
  readonly state: JobState;
  readonly dueAt: Date;
  readonly pushedAt: Date;
  /** How often it was handed over. */
  readonly attempts: number;
  readonly priority: number;
  readonly group: string | null;
  /** The end of its lease, or of the time for which a done or dead job is kept. */
  readonly until: Date | null;
  readonly callback: string | null;
  /** The last error. */
  readonly outcome: string | null;
  /** It was cancelled while it ran. */
  readonly cancelRequested: boolean;
  readonly headers: Record<string, string>;

  constructor(fields: ReadonlyMap<string, Reply>) {
    super(bytesOf(fields.get('body')));
    this.topic = textOf(fields.get('topic'));
    this.id = textOf(fields.get('id'));
    this.state = textOf(fields.get('state')) as JobState;
    this.dueAt = new Date(Number(fields.get('due_ms')));
    this.pushedAt = new Date(Number(fields.get('pushed_ms')));
    this.attempts = Number(fields.get('attempts'));
    this.priority = Number(fields.get('priority'));
    this.group = textOrNull(fields.get('group'));
    this.until = dateOrNull(fields.get('until_ms'));
    this.callback = textOrNull(fields.get('callback'));
    this.outcome = textOrNull(fields.get('outcome'));
    this.cancelRequested = fields.get('cancel_requested') !== undefined;
    this.headers = headersOf(fields.get('headers'));
  }
}

/** What a handler gets. */
export class Job extends Body {
  private controller: AbortController | undefined;
  private stopped: StopReason | undefined;
  private end: number | undefined;
  private askers: Array<() => void> = [];
  /** Sees to it that `extended` is called. @internal */
  learn: () => void = () => {};

  constructor(
    readonly topic: string,
    readonly id: string,
    payload: Buffer,
    /** 1 the first time. */
    readonly attempt: number,
    readonly dueAt: Date,
    readonly headers: Record<string, string>,
  ) {
    super(payload);
  }

  /** When the lease ends unless it is extended, which the worker does. Asks the server if it is not known yet. */
  async leaseUntil(): Promise<Date> {
    if (this.end === undefined) {
      await new Promise<void>((resolve) => {
        this.askers.push(resolve);
        this.learn();
      });
    }
    return new Date(this.end!);
  }

  /** Aborted when the handler should stop: `reason` is a `JobStopped` with `cancelled`, `lease_lost` or `stopping`. Made to be handed on, for example to `fetch`. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.stopped !== undefined) this.controller.abort(new JobStopped(this.stopped));
    }
    return this.controller.signal;
  }

  /** @internal */
  get isLeaseKnown(): boolean {
    return this.end !== undefined;
  }
  /** Why the handler was told to stop, or undefined. @internal */
  get told(): StopReason | undefined {
    return this.stopped;
  }
  /** @internal */
  tell(reason: StopReason): void {
    if (this.stopped !== undefined) return;
    this.stopped = reason;
    this.controller?.abort(new JobStopped(reason));
  }
  /** @internal */
  extended(end: number): void {
    this.end = end;
    for (const resolve of this.askers.splice(0)) resolve();
  }
}

export type ScheduleState = 'active' | 'paused' | 'ended' | 'broken';

/** A schedule; what it does not have is null. */
export interface Schedule {
  readonly name: string;
  readonly state: ScheduleState;
  readonly topic: string;
  /** Only from `getSchedule`; otherwise null. */
  readonly payload: Buffer | null;
  /** Only from `getSchedule`; otherwise empty. */
  readonly headers: Record<string, string>;
  /** Milliseconds. */
  readonly every: number | null;
  readonly cron: string | null;
  readonly zone: string | null;
  readonly start: Date | null;
  readonly end: Date | null;
  readonly runs: number | null;
  /** Milliseconds. */
  readonly jitter: number | null;
  readonly overlap: string | null;
  readonly missed: string | null;
  readonly priority: number | null;
  readonly group: string | null;
  readonly retry: number | null;
  readonly backoff: string | null;
  /** Milliseconds. */
  readonly timeout: number | null;
  readonly callback: string | null;
  readonly nextAt: Date | null;
  /** The same moment by the clock of its zone. */
  readonly nextLocal: string | null;
  readonly made: number;
  readonly skipped: number;
  readonly missedCount: number;
  /** What is wrong with it, if its state is `broken`. */
  readonly problem: string | null;
  /** Only from `every` and `cron`; otherwise null. */
  readonly result: 'created' | 'updated' | 'unchanged' | null;
}

export interface ScheduledRun {
  readonly topic: string;
  readonly id: string;
  readonly state: JobState;
  readonly dueAt: Date;
}

export interface Occurrence {
  readonly at: Date;
  /** The same moment by the clock of the zone. */
  readonly local: string;
}

export function scheduleOf(fields: ReadonlyMap<string, Reply>): Schedule {
  const text = (name: string): string | null => textOrNull(fields.get(name));
  const count = (name: string): number | null => (fields.has(name) ? Number(fields.get(name)) : null);
  const duration = (name: string): number | null => (fields.has(name) ? parseDuration(textOf(fields.get(name))) : null);
  return {
    name: text('name') ?? '',
    state: (text('state') ?? 'broken') as ScheduleState,
    topic: text('topic') ?? '',
    payload: fields.has('body') ? bytesOf(fields.get('body')) : null,
    headers: headersOf(fields.get('headers')),
    every: duration('every'),
    cron: text('cron'),
    zone: text('zone'),
    start: dateOrNull(fields.get('start_ms')),
    end: dateOrNull(fields.get('end_ms')),
    runs: count('runs'),
    jitter: duration('jitter'),
    overlap: text('overlap'),
    missed: text('missed'),
    priority: count('priority'),
    group: text('group'),
    retry: count('attempts'),
    backoff: text('backoff'),
    timeout: duration('lease'),
    callback: text('callback'),
    nextAt: dateOrNull(fields.get('next_ms')),
    nextLocal: text('next_local'),
    made: count('occurrences_made') ?? 0,
    skipped: count('occurrences_skipped') ?? 0,
    missedCount: count('occurrences_missed') ?? 0,
    problem: text('problem'),
    result: text('result') as Schedule['result'],
  };
}

export function bytesOf(value: Reply | undefined): Buffer {
  return value instanceof Buffer ? value : Buffer.from(textOf(value));
}

export function headersOf(value: Reply | undefined): Record<string, string> {
  // fromEntries, since `__proto__` is a name that a header may have.
  return value instanceof Map ? Object.fromEntries(Array.from(value, ([name, text]) => [name, textOf(text)])) : {};
}

function textOrNull(value: Reply | undefined): string | null {
  return value === undefined || value === null ? null : textOf(value);
}

function dateOrNull(value: Reply | undefined): Date | null {
  return value === undefined || value === null ? null : new Date(Number(value));
}
