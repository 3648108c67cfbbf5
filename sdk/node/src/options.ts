import type {ConnectionOptions} from 'node:tls';
import {debuglog} from 'node:util';
import type {ConnectionSettings} from './connection';
import {invalid} from './errors';
import {show, toMillis, type Duration, type Headers, type Moment} from './values';

/** What this library logs with: `console`, pino, winston and others have these four. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What is not given has the default that is named. */
export interface ClientOptions {
  /** `'host:port'` of the server's RESP address: `$DELAYQ_RESP`, or `127.0.0.1:9278`. */
  server?: string;
  /** The secret of a token: `$DELAYQ_TOKEN`, or none. */
  token?: string;
  /** The name of the token: any. */
  tokenName?: string;
  /** `true`, or options of `tls.connect`, such as `ca`, `cert` and `key`: no TLS. */
  tls?: boolean | ConnectionOptions;
  /** How long one attempt to connect may take: 5 s. */
  connectTimeout?: Duration;
  /** How long the server may be silent before the connection is given up: 30 s. The `wait` of a pop is added by itself. */
  timeout?: Duration;
  /** For how long a call is tried again while the server is away, overloaded or stops: 15 s. 0: not at all. */
  retryFor?: Duration;
  /** How many calls may wait for their answers: 100,000. Further ones fail with `overloaded`. */
  maxPending?: number;
  /** Default: warnings and errors to `console`, the rest where `NODE_DEBUG=delayq` sends it. */
  logger?: Logger;
}

/** What a job may have besides its topic, id and payload. */
export interface JobOptions {
  /** 0 is taken first; default 1024. */
  priority?: number;
  /** How many attempts in all; 0: no limit. Default: as the topic says, 16. */
  retry?: number;
  /** The pauses between attempts, as the server writes them: `'10s'` or `'10s,1m,10m'`. */
  backoff?: string;
  /** How long an attempt may take before the job is handed out again; a worker extends it by itself. */
  timeout?: Duration;
  /** For `cancelGroup`. */
  group?: string;
  /** A URL that the server calls when the job is due, instead of handing it to a worker. */
  callback?: string;
  headers?: Headers;
}

export interface EnqueueOptions extends JobOptions {
  /** Due after this time; default: at once. */
  processIn?: Duration;
  /** Due at this moment. */
  processAt?: Moment;
  /** When a job with this id waits or runs: `replace` it (default), `keep` it, or `reject` this one with `conflict`. */
  onConflict?: 'replace' | 'keep' | 'reject';
  signal?: AbortSignal;
}

export interface ScheduleOptions extends JobOptions {
  /** No occurrence before this moment. */
  start?: Moment;
  /** No occurrence after this moment. */
  end?: Moment;
  /** How many jobs are made in all. */
  runs?: number;
  /** Each job is due up to this much later than its occurrence. */
  jitter?: Duration;
  /** When the job before is still there: `allow` (default), `skip` or `replace`. */
  overlap?: 'allow' | 'skip' | 'replace';
  /** Which occurrences are made up for when the server was away: `one` (default), `skip` or `all`. */
  missed?: 'one' | 'skip' | 'all';
  signal?: AbortSignal;
}

/** Any call can be given up. It then fails with the `reason` of the signal; whether the server carried it out is not known. */
export interface CallSignal {
  signal?: AbortSignal;
}

export interface WorkerOptions {
  /** How many handlers run at once: 10. */
  concurrency?: number;
  /** How long a job is reserved for this worker before the lease is extended: what the job or its topic says. */
  lease?: Duration;
  /** For how long one request to the server waits for a job: 30 s. */
  wait?: Duration;
  /** How long handlers may go on after `stop()`: 10 s. */
  grace?: Duration;
}

const debug = debuglog('delayq');
const DEFAULT_LOGGER: Logger = {
  debug: (message) => debug('%s', message),
  info: (message) => debug('%s', message),
  warn: (message) => console.warn(message),
  error: (message) => console.error(message),
};

/** Fails on a key that is not an option: a misspelled `processIn` would make a job run at once. */
export function checkKeys(what: string, options: object, known: readonly string[]): void {
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) throw invalid(key, `is not an option of ${what}; there are: ${known.join(', ')}`);
  }
}

function parseServer(server: string): {host: string; port: number} {
  const found = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(server);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) throw invalid('server', `${show(server)} is not HOST:PORT`);
  return {host: (found[1] ?? found[2])!, port};
}

const CLIENT_KEYS = ['server', 'token', 'tokenName', 'tls', 'connectTimeout', 'timeout', 'retryFor', 'maxPending', 'logger'];

export function settingsOf(options: ClientOptions): ConnectionSettings {
  checkKeys('Client', options, CLIENT_KEYS);
  const {maxPending = 100_000} = options;
  if (!Number.isSafeInteger(maxPending) || maxPending < 1) throw invalid('maxPending', `${show(maxPending)} is not a whole number above 0`);
  return {
    ...parseServer(options.server ?? process.env['DELAYQ_RESP'] ?? '127.0.0.1:9278'),
    token: options.token ?? process.env['DELAYQ_TOKEN'],
    tokenName: options.tokenName ?? 'default',
    tls: options.tls === true ? {} : options.tls === false ? undefined : options.tls,
    connectTimeout: toMillis('connectTimeout', options.connectTimeout ?? 5000),
    timeout: toMillis('timeout', options.timeout ?? 30_000),
    retryFor: toMillis('retryFor', options.retryFor ?? 15_000),
    maxPending,
    logger: options.logger ?? DEFAULT_LOGGER,
  };
}

/** `WorkerOptions` with all defaults filled in; times are milliseconds. */
export interface WorkerSettings {
  readonly concurrency: number;
  readonly lease: number | undefined;
  readonly wait: number;
  readonly grace: number;
}

export function workerSettingsOf(options: WorkerOptions): WorkerSettings {
  checkKeys('Worker', options, ['concurrency', 'lease', 'wait', 'grace']);
  const {concurrency = 10} = options;
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) throw invalid('concurrency', `${show(concurrency)} is not a whole number above 0`);
  return {
    concurrency,
    lease: options.lease === undefined ? undefined : toMillis('lease', options.lease),
    wait: toMillis('wait', options.wait ?? 30_000),
    grace: toMillis('grace', options.grace ?? 10_000),
  };
}
