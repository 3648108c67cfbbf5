import {parseDuration, toMillis, type Duration} from './values';

/** The names of the server's table of errors. */
export type ErrorCode =
  | 'invalid'
  | 'too_large'
  | 'conflict'
  | 'not_found'
  | 'stale_lease'
  | 'overloaded'
  | 'disk_full'
  | 'unavailable'
  | 'stopping'
  | 'unauthorized'
  | 'forbidden'
  | 'corrupt'
  | 'internal';

const CODES = new Map<string, ErrorCode>([
  ['INVALID', 'invalid'],
  ['TOOLARGE', 'too_large'],
  ['CONFLICT', 'conflict'],
  ['NOTFOUND', 'not_found'],
  ['STALELEASE', 'stale_lease'],
  ['OVERLOADED', 'overloaded'],
  ['DISKFULL', 'disk_full'],
  ['UNAVAILABLE', 'unavailable'],
  ['STOPPING', 'stopping'],
  ['NOAUTH', 'unauthorized'],
  ['NOPERM', 'forbidden'],
  ['CORRUPT', 'corrupt'],
  ['INTERNAL', 'internal'],
]);
const RETRYABLE: ReadonlySet<ErrorCode> = new Set(['overloaded', 'disk_full', 'unavailable', 'stopping']);

/** What every call of this library fails with, except for an abort by an `AbortSignal`. */
export class DelayqError extends Error {
  override readonly name = 'DelayqError';

  constructor(
    /** The name of the error in the server's table. A lost connection is `unavailable`. */
    readonly code: ErrorCode,
    message: string,
    options?: {cause?: unknown},
  ) {
    super(message, options);
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }

  /** After how many milliseconds the server suggests to try again, or null. */
  get retryAfter(): number | null {
    const found = /\(try again in ([^)]+)\)$/.exec(this.message);
    return found === null ? null : parseDuration(found[1]!);
  }
}

/** A mistake of the caller in the argument or option `field`. */
export function invalid(field: string, problem: string): DelayqError {
  return new DelayqError('invalid', `${field}: ${problem}`);
}

/** The error that a reply `-CODE message` means; `line` is without the `-`. */
export function errorOfLine(line: string): DelayqError {
  const space = line.indexOf(' ');
  const code = CODES.get(space < 0 ? line : line.slice(0, space));
  if (code === undefined) return new DelayqError('internal', line);
  return new DelayqError(code, space < 0 ? '' : line.slice(space + 1));
}

/** Thrown by a handler: the job is to be tried again after this delay, whatever its backoff says. It counts as an attempt. */
export class RetryIn extends Error {
  override readonly name = 'RetryIn';
  /** In milliseconds. */
  readonly delay: number;

  constructor(delay: Duration, reason = 'the handler asked for another try') {
    super(reason);
    this.delay = toMillis('delay', delay);
  }
}

/** Thrown by a handler: there is no use in trying this job again. It is dead at once, with this reason. */
export class Dead extends Error {
  override readonly name = 'Dead';
}

/** Why a handler is told to stop. */
export type StopReason = 'cancelled' | 'lease_lost' | 'stopping';

const STOP_TEXTS: Record<StopReason, string> = {
  cancelled: 'the job was cancelled',
  lease_lost: 'the lease of the job is lost: another worker may have it',
  stopping: 'the worker stops',
};

/** The `reason` of `job.signal` when a handler is told to stop. */
export class JobStopped extends Error {
  override readonly name = 'JobStopped';

  constructor(readonly reason: StopReason) {
    super(STOP_TEXTS[reason]);
  }
}

const LONGEST_REASON = 1000;
/** Control characters other than tab and newline. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** What is stored with a job as its last error: clean text of at most 1,000 bytes. */
export function reasonOf(error: unknown): string {
  let text: string;
  try {
    text = error instanceof RetryIn || error instanceof Dead ? error.message : String(error);
  } catch {
    text = 'an error without a text';
  }
  const bytes = Buffer.from(text.slice(0, LONGEST_REASON).replace(CONTROLS, ' '));
  let end = Math.min(bytes.length, LONGEST_REASON);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) --end;
  return bytes.toString('utf8', 0, end);
}
