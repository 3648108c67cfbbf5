import {randomFillSync} from 'node:crypto';
import {invalid} from './errors';

/** Milliseconds, or a text such as `'250ms'`, `'30s'`, `'1h30m'` or `'7d'`. */
export type Duration = number | string;
/** A moment; a number is Unix milliseconds, as `Date.now()` returns. */
export type Moment = Date | number;
/** Strings are sent as UTF-8, bytes as they are, and everything else as JSON. */
export type Payload = string | Uint8Array | object | number | boolean | null;
/** Names and values that travel with a job. */
export type Headers = Readonly<Record<string, string>>;
/** A part of a command. */
export type Word = string | Uint8Array;

const UNITS: Readonly<Record<string, number>> = {ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000};

/** Milliseconds of a text such as `1h30m`, or null if it is none. */
export function parseDuration(text: string): number | null {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return null;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(ms|s|m|h|d)/g)) total += Number(amount) * UNITS[unit!]!;
  return Math.round(total);
}

/** Checks a duration that a caller gave as `field`, and returns its whole milliseconds. */
export function toMillis(field: string, value: Duration): number {
  const millis = typeof value === 'string' ? parseDuration(value) : value;
  if (typeof millis === 'number' && Number.isFinite(millis) && millis >= 0 && millis <= Number.MAX_SAFE_INTEGER) return Math.round(millis);
  throw invalid(field, `${show(value)} is not a duration: use milliseconds, or a text such as '30s' or '1h30m'`);
}

/** As durations are on the wire. */
export function wireDuration(field: string, value: Duration): string {
  return `${toMillis(field, value)}ms`;
}

/** As moments are on the wire. */
export function wireMoment(field: string, value: Moment): string {
  const millis = value instanceof Date ? value.getTime() : value;
  if (typeof millis === 'number' && Number.isFinite(millis) && Math.abs(millis) <= 8.64e15) return (Math.round(millis) / 1000).toFixed(3);
  throw invalid(field, `${show(value)} is not a moment: use a Date, or Unix milliseconds`);
}

export function wireText(field: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  throw invalid(field, `${show(value)} is not a text`);
}

export function wireCount(field: string, value: unknown): string {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value);
  throw invalid(field, `${show(value)} is not a whole number`);
}

/** The bytes or text of a payload. */
export function wirePayload(value: unknown): Word {
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (problem) {
    throw invalid('payload', `cannot be written as JSON: ${(problem as Error).message}`);
  }
  if (text === undefined) throw invalid('payload', `${show(value)} has no JSON: use a string, bytes, or a value that JSON can hold`);
  return text;
}

/** Adds `HEADER name value` for each header. */
export function addHeaders(words: Word[], headers: unknown): void {
  if (typeof headers !== 'object' || headers === null) throw invalid('headers', `${show(headers)} is not an object`);
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    words.push('HEADER', name, wireText(`headers.${name}`, value));
  }
}

/** A value as an error shows it. */
export function show(value: unknown): string {
  let text: string;
  try {
    text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  } catch {
    text = typeof value;
  }
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

const HEX = Array.from({length: 256}, (_, byte) => byte.toString(16).padStart(2, '0'));
const randomness = Buffer.allocUnsafe(10 * 512);
let used = randomness.length;

/** A new UUID of version 7: it begins with the time, so ids made later sort later, to the millisecond. */
export function uuid7(now: number = Date.now()): string {
  if (used >= randomness.length) {
    randomFillSync(randomness);
    used = 0;
  }
  const byte = (index: number): string => HEX[randomness[used + index]!]!;
  const time = now.toString(16).padStart(12, '0');
  const version = HEX[0x70 | (randomness[used]! & 0x0f)]!;
  const variant = HEX[0x80 | (randomness[used + 2]! & 0x3f)]!;
  const text =
    `${time.slice(0, 8)}-${time.slice(8)}-${version}${byte(1)}-${variant}${byte(3)}-` + byte(4) + byte(5) + byte(6) + byte(7) + byte(8) + byte(9);
  used += 10;
  return text;
}
