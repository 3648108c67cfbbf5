import * as net from 'node:net';
import * as tls from 'node:tls';
import {performance} from 'node:perf_hooks';
import {DelayqError} from './errors';
import {Decoder, Encoder, ErrorReply, type Reply} from './resp';
import type {Logger} from './options';
import type {Word} from './values';

/** Settings of a connection; the options of a client, with all defaults filled in. Times are milliseconds. */
export interface ConnectionSettings {
  readonly host: string;
  readonly port: number;
  readonly token: string | undefined;
  readonly tokenName: string;
  readonly tls: tls.ConnectionOptions | undefined;
  readonly connectTimeout: number;
  readonly timeout: number;
  readonly retryFor: number;
  readonly maxPending: number;
  readonly logger: Logger;
}

export interface CallOptions<T> {
  /** What the call resolves with. An exception of it rejects the call. */
  readonly convert: (reply: Reply) => T;
  /** Whether bulk strings are Buffers. */
  readonly raw?: boolean;
  /** Whether the command may be sent again although it may have been carried out. */
  readonly safe?: boolean;
  /** For how long the server itself may wait before it answers. */
  readonly wait?: number;
  /** Until when, by `performance.now()`, the call may be sent (again). */
  readonly until?: number;
  readonly signal?: AbortSignal | undefined;
}

/** How many bytes of commands are written at once. */
const WRITE_SIZE = 256 * 1024;
const MOST_SENT = 16_384;
const FIRST_BACKOFF = 50;
const LAST_BACKOFF = 2000;

class Call {
  done = false;
  sentAt = 0;
  tries = 0;
  abort: (() => void) | undefined;

  constructor(
    readonly words: readonly Word[],
    readonly options: CallOptions<unknown>,
    readonly until: number,
    private readonly resolve: (value: unknown) => void,
    private readonly reject: (error: unknown) => void,
  ) {}

  succeed(reply: Reply): void {
    try {
      const value = this.options.convert(reply);
      if (this.finish()) this.resolve(value);
    } catch (problem) {
      this.fail(problem);
    }
  }

  fail(error: unknown): void {
    if (this.finish()) this.reject(error);
  }

  private finish(): boolean {
    if (this.done) return false;
    this.done = true;
    if (this.abort !== undefined) this.options.signal?.removeEventListener('abort', this.abort);
    return true;
  }
}

/** First in, first out; taking from an array's front would move all the rest. */
class Queue {
  private items: Call[] = [];
  private head = 0;

  get size(): number {
    return this.items.length - this.head;
  }
  peek(): Call | undefined {
    return this.items[this.head];
  }
  push(call: Call): void {
    this.items.push(call);
  }
  shift(): Call | undefined {
    const call = this.items[this.head];
    if (call === undefined) return undefined;
    if (++this.head === this.items.length) {
      this.items = [];
      this.head = 0;
    } else if (this.head > 10_000 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return call;
  }
  takeAll(): Call[] {
    const all = this.items.slice(this.head);
    this.items = [];
    this.head = 0;
    return all;
  }
  putAll(calls: Call[]): void {
    this.items = calls;
    this.head = 0;
  }
}

/** Error texts, too, and the log name the server so. */
export function addressOf(settings: {readonly host: string; readonly port: number}): string {
  return settings.host.includes(':') ? `[${settings.host}]:${settings.port}` : `${settings.host}:${settings.port}`;
}

/** How long to wait before the try after `failures` failed ones; random, so that many clients do not come back together. */
export function backoff(failures: number): number {
  const most = Math.min(FIRST_BACKOFF * 2 ** Math.min(failures, 10), LAST_BACKOFF);
  return most * (0.5 + Math.random() / 2);
}

/**
 * One connection to the server, made when it is needed and made again when it was lost. Commands of the same turn of the
 * event loop leave in one write, and their replies come in their order. Every call ends: with its reply, or with an error
 * when no reply came in time. The process is not kept alive by an idle connection.
 */
export class Connection {
  private socket: net.Socket | undefined;
  private decoder = new Decoder();
  private readonly encoder = new Encoder();
  private readonly waiting = new Queue();
  private readonly sent = new Queue();
  private ready = false;
  private blocked = false;
  private flushing = false;
  private failures = 0;
  private lastReplyAt = 0;
  private pending = 0;
  private watch: NodeJS.Timeout | undefined;
  private retry: NodeJS.Timeout | undefined;
  private readonly delayed = new Map<Call, NodeJS.Timeout>();
  private closed = false;
  private ended: (() => void) | undefined;
  private whenIdle: Array<() => void> = [];
  private lastProblem: DelayqError | undefined;

  /** `onLost` is called whenever a working connection was lost. */
  constructor(
    private readonly settings: ConnectionSettings,
    private readonly onLost: () => void = () => {},
  ) {}

  /** How many calls have no result yet. */
  get calls(): number {
    return this.pending;
  }

  call<T>(words: readonly Word[], options: CallOptions<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.closed) return reject(new DelayqError('invalid', 'this client is closed'));
      if (options.signal?.aborted === true) return reject(options.signal.reason);
      if (this.pending >= this.settings.maxPending) {
        return reject(new DelayqError('overloaded', `${this.pending} calls wait for their answers already: at most ${this.settings.maxPending} may (maxPending)`));
      }
      const until = options.until ?? performance.now() + this.settings.retryFor;
      const call = new Call(words, options, until, resolve as (value: unknown) => void, reject);
      if (options.signal !== undefined) this.listen(call, options.signal);
      if (this.pending++ === 0) this.wake();
      this.waiting.push(call);
      this.scheduleFlush();
    });
  }

  /** Resolves when every call has its result. */
  idle(): Promise<void> {
    return this.pending === 0 ? Promise.resolve() : new Promise((resolve) => this.whenIdle.push(resolve));
  }

  /** Fails what is still open, and closes the connection. */
  close(): void {
    this.closed = true;
    this.drop(new DelayqError('unavailable', 'the client was closed'), true);
  }

  /**
   * Tells the server that nothing more will be sent, and reads until it has closed the connection: what it handed over
   * before that still arrives. Waits for it no longer than `longest` milliseconds.
   */
  finish(longest: number): Promise<void> {
    this.closed = true;
    const socket = this.socket;
    if (socket === undefined || !this.ready) {
      this.close();
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.ended?.(), longest);
      this.ended = () => {
        this.ended = undefined;
        clearTimeout(timer);
        this.close();
        resolve();
      };
      socket.end();
    });
  }

  private listen(call: Call, signal: AbortSignal): void {
    call.abort = () => {
      if (call.done) return;
      // Its place in the pipeline stays until the reply came; one that waits for a later try has none.
      const timer = this.delayed.get(call);
      call.fail(signal.reason);
      if (timer !== undefined) {
        clearTimeout(timer);
        this.delayed.delete(call);
        this.release(1);
      }
    };
    signal.addEventListener('abort', call.abort, {once: true});
  }

  private release(calls: number): void {
    this.pending -= calls;
    if (this.pending > 0) return;
    clearInterval(this.watch);
    this.watch = undefined;
    this.socket?.unref();
    const idle = this.whenIdle;
    this.whenIdle = [];
    for (const resolve of idle) resolve();
  }

  /** From no calls to one. */
  private wake(): void {
    this.lastReplyAt = performance.now();
    this.socket?.ref();
    this.watch ??= setInterval(() => this.look(), Math.min(Math.max(this.settings.timeout / 4, 5), 250));
  }

  /** Ends what has waited too long. */
  private look(): void {
    const now = performance.now();
    const first = this.sent.peek();
    if (first !== undefined) {
      const since = Math.max(first.sentAt, this.lastReplyAt);
      if (now - since > this.settings.timeout + (first.options.wait ?? 0)) {
        this.drop(new DelayqError('unavailable', `${addressOf(this.settings)} did not answer within ${Math.round(now - since)} ms`));
      }
    }
    if (!this.ready) this.endOld(now);
  }

  /** Ends the calls that could not be sent in time. */
  private endOld(now: number): void {
    const left: Call[] = [];
    let ended = 0;
    for (const call of this.waiting.takeAll()) {
      if (!call.done && now < call.until) {
        left.push(call);
        continue;
      }
      // While the first attempt to connect still runs, it has its own deadline.
      if (!call.done && this.lastProblem === undefined) {
        left.push(call);
        continue;
      }
      call.fail(this.lastProblem);
      ++ended;
    }
    this.waiting.putAll(left);
    if (ended > 0) this.release(ended);
  }

  private scheduleFlush(): void {
    if (this.flushing || this.blocked) return;
    if (this.socket === undefined) {
      if (this.retry === undefined) this.connect();
      return;
    }
    if (!this.ready) return;
    this.flushing = true;
    setImmediate(() => {
      this.flushing = false;
      this.flush();
    });
  }

  private flush(): void {
    const now = performance.now();
    while (this.ready && !this.blocked && this.sent.size < MOST_SENT) {
      let added = 0;
      while (this.encoder.bytes < WRITE_SIZE && this.sent.size < MOST_SENT) {
        const call = this.waiting.shift();
        if (call === undefined) break;
        if (call.done) {
          this.release(1);
          continue;
        }
        call.sentAt = now;
        this.encoder.add(call.words);
        this.sent.push(call);
        ++added;
      }
      if (added === 0) return;
      const socket = this.socket!;
      this.blocked = !this.encoder.flush((data, encoding) => (typeof data === 'string' ? socket.write(data, encoding) : socket.write(data)));
    }
  }

  private connect(): void {
    const settings = this.settings;
    const socket =
      settings.tls === undefined
        ? net.connect({host: settings.host, port: settings.port, noDelay: true, keepAlive: true})
        : tls.connect({
            host: settings.host,
            port: settings.port,
            ...(net.isIP(settings.host) === 0 ? {servername: settings.host} : {}),
            ...settings.tls,
          });
    this.socket = socket;
    this.decoder = new Decoder();
    this.blocked = false;
    this.lastProblem = undefined;
    const timer = setTimeout(() => socket.destroy(new Error(`no connection within ${settings.connectTimeout} ms`)), settings.connectTimeout);
    let problem: Error | undefined;
    let greeted = false;
    socket.once(settings.tls === undefined ? 'connect' : 'secureConnect', () => {
      if (settings.tls !== undefined) socket.setNoDelay(true).setKeepAlive(true);
      const greeting = ['HELLO', '3'];
      if (settings.token !== undefined) greeting.push('AUTH', settings.tokenName, settings.token);
      const hello = new Encoder();
      hello.add(greeting);
      hello.flush((data) => socket.write(data));
    });
    socket.on('data', (chunk: Buffer) => {
      if (this.socket !== socket) return;
      try {
        this.decoder.feed(chunk);
        if (!greeted) {
          const reply = this.decoder.next(false);
          if (reply === undefined) return;
          greeted = true;
          clearTimeout(timer);
          if (reply instanceof ErrorReply) return this.refused(reply.error);
          this.greeted();
        }
        this.read();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on('drain', () => {
      if (this.socket !== socket) return;
      this.blocked = false;
      this.flush();
    });
    socket.on('error', (error) => {
      problem = error;
    });
    socket.on('close', () => {
      clearTimeout(timer);
      if (this.socket !== socket) return;
      const text = problem === undefined ? 'the server closed the connection' : problem.message || (problem as NodeJS.ErrnoException).code || problem.name;
      const what = greeted ? 'the connection to' : 'cannot connect to';
      this.drop(new DelayqError('unavailable', `${what} ${addressOf(settings)}${greeted ? ' was lost' : ''}: ${text}`, {cause: problem}));
    });
  }

  private greeted(): void {
    this.ready = true;
    if (this.failures > 0) this.settings.logger.info(`delayq: connected to ${addressOf(this.settings)} again`);
    this.lastReplyAt = performance.now();
    if (this.pending === 0) this.socket!.unref();
    this.flush();
  }

  /** The server does not let us in. What it refuses for good is the error of all calls. */
  private refused(error: DelayqError): void {
    if (error.retryable) return this.drop(error);
    const waiting = this.waiting.takeAll();
    for (const call of waiting) call.fail(error);
    const socket = this.socket;
    this.socket = undefined;
    socket?.destroy();
    this.release(waiting.length);
  }

  private read(): void {
    let answered = 0;
    try {
      for (;;) {
        const call = this.sent.peek();
        const reply = this.decoder.next(call?.options.raw === true);
        if (reply === undefined) break;
        if (call === undefined) throw new Error('the server sent a reply to nothing');
        this.sent.shift();
        if (this.settle(call, reply)) ++answered;
      }
    } finally {
      this.lastReplyAt = performance.now();
      // Not when it was greeted: one that is closed again after each greeting must not be made again without a pause.
      if (answered > 0) this.failures = 0;
      if (answered > 0) this.release(answered);
    }
    if (this.waiting.size > 0) this.scheduleFlush();
  }

  /** Returns whether the call has ended, which it has not if it is tried again. */
  private settle(call: Call, reply: Reply): boolean {
    if (reply instanceof ErrorReply) return this.tryLater(call, reply.error);
    call.succeed(reply);
    return true;
  }

  /** A call that the server could not carry out now. Returns whether it has ended. */
  private tryLater(call: Call, error: DelayqError): boolean {
    if (call.done) return true;
    const pause = error.retryAfter ?? backoff(call.tries++);
    // An engine that is away may have done what it was asked for; what was refused for another reason was not begun.
    const mayBeDone = error.code === 'unavailable' && call.options.safe !== true;
    if (this.closed || !error.retryable || mayBeDone || performance.now() + pause >= call.until) {
      call.fail(error);
      return true;
    }
    const timer = setTimeout(() => {
      this.delayed.delete(call);
      this.waiting.push(call);
      this.scheduleFlush();
    }, pause);
    this.delayed.set(call, timer);
    return false;
  }

  /** Gives the connection up. Calls that may be sent (again) wait for the next one, unless this is `final`. */
  private drop(error: DelayqError, final = false): void {
    const wasReady = this.ready;
    const socket = this.socket;
    this.socket = undefined;
    this.ready = false;
    this.blocked = false;
    socket?.destroy();
    const now = performance.now();
    const left: Call[] = [];
    let ended = 0;
    const stop = final || this.closed;
    const decide = (call: Call, wasSent: boolean): void => {
      const again = !stop && now < call.until && (!wasSent || call.options.safe === true);
      if (call.done || !again) {
        call.fail(error);
        ++ended;
      } else {
        left.push(call);
      }
    };
    for (const call of this.sent.takeAll()) decide(call, true);
    for (const call of this.waiting.takeAll()) decide(call, false);
    this.waiting.putAll(left);
    if (stop) {
      for (const [call, timer] of this.delayed) {
        clearTimeout(timer);
        call.fail(error);
        ++ended;
      }
      this.delayed.clear();
      clearTimeout(this.retry);
      this.retry = undefined;
    }
    this.lastProblem = error;
    if (ended > 0) this.release(ended);
    this.ended?.();
    if (stop) return;
    if (wasReady || this.failures === 0) this.settings.logger.warn(`delayq: ${error.message}`);
    if (wasReady) this.onLost();
    const pause = wasReady && this.failures === 0 ? 0 : backoff(this.failures);
    ++this.failures;
    if (this.pending > 0) this.connectAfter(pause);
  }

  private connectAfter(pause: number): void {
    this.retry ??= setTimeout(() => {
      this.retry = undefined;
      if (!this.closed && this.socket === undefined && this.waiting.size > 0) this.connect();
    }, pause);
  }
}
