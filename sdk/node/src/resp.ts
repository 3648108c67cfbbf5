import {errorOfLine, type DelayqError} from './errors';
import type {Word} from './values';

/** An error reply. It is a value here, since in a pipeline it belongs to one command only. */
export class ErrorReply {
  constructor(readonly error: DelayqError) {}
}

export type Reply = string | number | boolean | null | Buffer | ErrorReply | Reply[] | Map<string, Reply>;

/** The other side does not speak RESP, or a reply is larger than this library reads. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** What one reply may have at most. The server's own bounds are far lower. */
export interface ReplyLimits {
  readonly line: number;
  readonly bytes: number;
  readonly items: number;
  readonly depth: number;
}

export const REPLY_LIMITS: ReplyLimits = {line: 65_536, bytes: 192 * 1024 * 1024, items: 1_000_000, depth: 8};

const CR = 13;
const NEEDS_MORE = Symbol('the rest of the value has not come yet');
const OPENED = Symbol('an array or map begins');

/** An array or map whose items are still coming. */
interface Frame {
  readonly items: Reply[];
  readonly isMap: boolean;
  missing: number;
}

/**
 * Turns bytes into replies of RESP2 or RESP3. Each byte is looked at once, however the replies are cut.
 * After a ProtocolError nothing more can be read.
 */
export class Decoder {
  private buffer: Buffer = Buffer.alloc(0);
  private at = 0;
  /** Chunks that came after `buffer`, and are joined to it when there are `needed` bytes. */
  private later: Buffer[] = [];
  private laterBytes = 0;
  private needed = 0;
  private readonly open: Frame[] = [];
  private replyBytes = 0;
  private replyItems = 0;

  constructor(private readonly limits: ReplyLimits = REPLY_LIMITS) {}

  feed(chunk: Buffer): void {
    if (this.at === this.buffer.length && this.later.length === 0) {
      this.buffer = chunk;
      this.at = 0;
      return;
    }
    this.later.push(chunk);
    this.laterBytes += chunk.length;
  }

  /** Returns the next reply, or undefined if it has not come as a whole. With `raw`, bulk strings are Buffers. */
  next(raw: boolean): Reply | undefined {
    if (!this.join()) return undefined;
    for (;;) {
      const before = this.at;
      const value = this.readOne(raw);
      if (value === NEEDS_MORE) return undefined;
      this.replyBytes += this.at - before;
      if (this.replyBytes > this.limits.bytes) throw new ProtocolError(`a reply has more than ${this.limits.bytes} bytes`);
      if (value === OPENED) continue;
      const whole = this.add(value);
      if (whole === undefined) continue;
      this.replyBytes = 0;
      this.replyItems = 0;
      return whole;
    }
  }

  /** Joins what came later. Returns false if that would be in vain. */
  private join(): boolean {
    const rest = this.buffer.length - this.at;
    if (rest + this.laterBytes < this.needed) return false;
    this.needed = 0;
    if (this.later.length > 0) {
      this.buffer = Buffer.concat([this.buffer.subarray(this.at), ...this.later]);
      this.at = 0;
      this.later = [];
      this.laterBytes = 0;
    }
    return this.at < this.buffer.length;
  }

  /** Puts a value into the innermost open array. Returns the reply when it is whole. */
  private add(value: Reply): Reply | undefined {
    for (;;) {
      const frame = this.open[this.open.length - 1];
      if (frame === undefined) return value;
      frame.items.push(value);
      if (--frame.missing > 0) return undefined;
      this.open.pop();
      value = frame.isMap ? toMap(frame.items) : frame.items;
    }
  }

  private readOne(raw: boolean): Reply | typeof NEEDS_MORE | typeof OPENED {
    const start = this.at;
    if (start >= this.buffer.length) return NEEDS_MORE;
    const end = this.lineEnd(start + 1);
    if (end < 0) return this.wantMore(this.buffer.length - start + 1);
    const sign = this.buffer[start]!;
    switch (sign) {
      case 0x24: // $
      case 0x3d: // =
      case 0x21: // !
        return this.readBulk(sign, end, raw);
      case 0x2a: // *
      case 0x7e: // ~
      case 0x25: // %
        this.at = end + 2;
        return this.openArray(this.length(start + 1, end), sign === 0x25);
      default:
        this.at = end + 2;
        return this.readLine(sign, start + 1, end);
    }
  }

  private readLine(sign: number, from: number, end: number): Reply {
    switch (sign) {
      case 0x3a: // :
        return this.number(from, end);
      case 0x2b: // +
        return this.buffer.toString('utf8', from, end);
      case 0x2d: // -
        return new ErrorReply(errorOfLine(this.buffer.toString('utf8', from, end)));
      case 0x5f: // _
        return null;
      case 0x23: // #
        return this.buffer[from] === 0x74;
      case 0x2c: // ,
      case 0x28: // (
        return Number(this.buffer.toString('latin1', from, end));
      default:
        throw new ProtocolError(`a reply begins with ${JSON.stringify(String.fromCharCode(sign))}: is this the RESP port of a delayq server?`);
    }
  }

  /** -1: null, as RESP2 writes it. */
  private length(from: number, end: number): number {
    const length = this.number(from, end);
    if (length < -1) throw new ProtocolError('a reply has a negative length');
    return length;
  }

  private readBulk(sign: number, end: number, raw: boolean): Reply | typeof NEEDS_MORE {
    const length = this.length(this.at + 1, end);
    const from = end + 2;
    if (length < 0) {
      this.at = from;
      return null;
    }
    if (length > this.limits.bytes) throw new ProtocolError(`a reply has more than ${this.limits.bytes} bytes`);
    if (this.buffer.length < from + length + 2) return this.wantMore(from + length + 2 - this.at);
    const to = from + length;
    if (this.buffer[to] !== CR) throw new ProtocolError('a text of a reply does not end where it should');
    this.at = to + 2;
    if (sign === 0x21) return new ErrorReply(errorOfLine(this.buffer.toString('utf8', from, to)));
    if (sign === 0x3d) return this.buffer.toString('utf8', from + 4, to);
    // A copy, so that a small value does not keep a large chunk alive.
    return raw ? Buffer.from(this.buffer.subarray(from, to)) : this.buffer.toString('utf8', from, to);
  }

  private openArray(length: number, isMap: boolean): Reply | typeof OPENED {
    if (length < 0) return null;
    const missing = isMap ? 2 * length : length;
    if (missing === 0) return isMap ? new Map() : [];
    this.replyItems += missing;
    if (this.replyItems > this.limits.items) throw new ProtocolError(`a reply has more than ${this.limits.items} items`);
    if (this.open.length >= this.limits.depth) throw new ProtocolError(`a reply is nested more than ${this.limits.depth} deep`);
    this.open.push({items: [], isMap, missing});
    return OPENED;
  }

  private lineEnd(from: number): number {
    const buffer = this.buffer;
    const last = Math.min(buffer.length - 1, from + this.limits.line);
    for (let i = from; i < last; ++i) {
      if (buffer[i] === CR) return i;
    }
    if (last === from + this.limits.line) throw new ProtocolError(`a line of a reply has more than ${this.limits.line} bytes`);
    return -1;
  }

  private number(from: number, end: number): number {
    let at = from;
    const negative = this.buffer[at] === 0x2d;
    if (negative) ++at;
    let value = 0;
    for (; at < end; ++at) {
      const digit = this.buffer[at]! - 0x30;
      if (digit < 0 || digit > 9) throw new ProtocolError('a reply has a malformed number');
      value = value * 10 + digit;
    }
    return negative ? -value : value;
  }

  private wantMore(bytes: number): typeof NEEDS_MORE {
    this.needed = bytes;
    return NEEDS_MORE;
  }
}

function toMap(items: readonly Reply[]): Map<string, Reply> {
  const map = new Map<string, Reply>();
  for (let i = 0; i < items.length; i += 2) map.set(textOf(items[i]!), items[i + 1]!);
  return map;
}

/** The text of a bulk string, whether it was read raw or not. */
export function textOf(value: Reply | undefined): string {
  return typeof value === 'string' ? value : value instanceof Buffer ? value.toString() : String(value);
}

const SHORT = Array.from({length: 512}, (_, length) => `$${length}\r\n`);

/** Collects commands and writes them with few, large writes. */
export class Encoder {
  private text = '';
  private textBytes = 0;
  private parts: Array<[data: string | Uint8Array, encoding: 'utf8' | 'latin1']> = [];
  bytes = 0;

  add(words: readonly Word[]): void {
    let text = `*${words.length}\r\n`;
    let bytes = text.length;
    for (const word of words) {
      const length = typeof word === 'string' ? Buffer.byteLength(word) : word.length;
      const head = length < SHORT.length ? SHORT[length]! : `$${length}\r\n`;
      bytes += head.length + length + 2;
      if (typeof word === 'string') {
        text += head + word + '\r\n';
        continue;
      }
      this.addText(text + head, bytes - length - 2);
      this.endText();
      this.parts.push([word, 'utf8']);
      this.bytes += length;
      text = '\r\n';
      bytes = 2;
    }
    this.addText(text, bytes);
  }

  /** Hands everything to `write` and begins anew. Returns what the last write returned. */
  flush(write: (data: string | Uint8Array, encoding: 'utf8' | 'latin1') => boolean): boolean {
    this.endText();
    const parts = this.parts;
    this.parts = [];
    this.bytes = 0;
    let goesOn = true;
    for (const [data, encoding] of parts) goesOn = write(data, encoding);
    return goesOn;
  }

  private addText(text: string, bytes: number): void {
    this.text += text;
    this.textBytes += bytes;
    this.bytes += bytes;
  }

  private endText(): void {
    if (this.text === '') return;
    // latin1 is written faster, and ASCII is the same in both.
    this.parts.push([this.text, this.textBytes === this.text.length ? 'latin1' : 'utf8']);
    this.text = '';
    this.textBytes = 0;
  }
}
