// The parts below the client, without a server.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Dead, DelayqError, RetryIn} from 'delayq';
import {reasonOf} from '../dist/errors';
import {settingsOf, workerSettingsOf} from '../dist/options';
import {Decoder, Encoder, ErrorReply, ProtocolError, type Reply} from '../dist/resp';
import {parseDuration, toMillis, uuid7, wireMoment, wirePayload} from '../dist/values';
import {newRandom} from './server';

function decode(bytes: Buffer | string, raw = false): Reply[] {
  const decoder = new Decoder();
  decoder.feed(Buffer.from(bytes as string));
  const replies: Reply[] = [];
  for (let reply = decoder.next(raw); reply !== undefined; reply = decoder.next(raw)) replies.push(reply);
  return replies;
}

function encode(...words: Array<string | Uint8Array>): string {
  const encoder = new Encoder();
  encoder.add(words);
  const parts: Buffer[] = [];
  const {bytes} = encoder;
  encoder.flush((data, encoding) => {
    parts.push(typeof data === 'string' ? Buffer.from(data, encoding) : Buffer.from(data));
    return true;
  });
  const whole = Buffer.concat(parts);
  assert.equal(whole.length, bytes);
  return whole.toString('latin1');
}

function invalidOf(call: () => unknown): string {
  try {
    call();
  } catch (problem) {
    assert.ok(problem instanceof DelayqError);
    assert.equal(problem.code, 'invalid');
    return problem.message;
  }
  throw new Error('it did not fail');
}

test('replies of RESP2 and RESP3', () => {
  assert.deepEqual(decode('+OK\r\n:-12\r\n$3\r\na\r\n\r\n$-1\r\n_\r\n#t\r\n#f\r\n,1.5\r\n*-1\r\n*0\r\n%0\r\n'), ['OK', -12, 'a\r\n', null, null, true, false, 1.5, null, [], new Map()]);
  assert.deepEqual(decode('*2\r\n*1\r\n:1\r\n%1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n'), [[[1], new Map([['a', ['b']]])]]);
  assert.deepEqual(decode('=5\r\ntxt:x\r\n~1\r\n+y\r\n'), ['x', ['y']]);
  assert.deepEqual(decode(Buffer.from('$2\r\n\xff\x00\r\n', 'latin1'), true), [Buffer.from([0xff, 0])]);
  const [error] = decode('*1\r\n-CONFLICT it is there\r\n')[0] as Reply[];
  assert.ok(error instanceof ErrorReply && error.error.code === 'conflict' && error.error.message === 'it is there');
});

test('replies are the same however they are cut', () => {
  const random = newRandom();
  const one = '*3\r\n$5\r\nhello\r\n%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n$3\r\n€\r\n_\r\n-NOTFOUND no\r\n$0\r\n\r\n';
  const bytes = Buffer.from(one.repeat(20));
  const whole = decode(bytes, true);
  assert.equal(whole.length, 60);
  for (let round = 0; round < 200; ++round) {
    const decoder = new Decoder();
    const replies: Reply[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(bytes.length, at + 1 + Math.floor(random() * 30));
      decoder.feed(bytes.subarray(at, end));
      at = end;
      for (let reply = decoder.next(true); reply !== undefined; reply = decoder.next(true)) replies.push(reply);
    }
    assert.deepEqual(replies, whole);
  }
});

test('what no server should send is refused, and so is what is too large', () => {
  for (const bytes of ['HTTP/1.1 400\r\n', ':1x\r\n', '$x\r\n', '>1\r\n:1\r\n']) assert.throws(() => decode(bytes), ProtocolError, bytes);
  const limits = {line: 10, bytes: 100, items: 5, depth: 2};
  for (const bytes of ['+12345678901', '$101\r\n', `*2\r\n$60\r\n${'x'.repeat(60)}\r\n$60\r\n${'x'.repeat(60)}\r\n`, '*6\r\n', '%3\r\n', '*1\r\n*1\r\n*1\r\n:1\r\n']) {
    const decoder = new Decoder(limits);
    decoder.feed(Buffer.from(bytes));
    assert.throws(() => decoder.next(false), ProtocolError, bytes);
  }
});

test('commands', () => {
  assert.equal(encode('PUSH', '', 'a\r\n'), '*3\r\n$4\r\nPUSH\r\n$0\r\n\r\n$3\r\na\r\n\r\n');
  assert.equal(encode('é', Buffer.from([255, 0]), 'x'), '*3\r\n$2\r\n\xc3\xa9\r\n$2\r\n\xff\x00\r\n$1\r\nx\r\n');
  assert.equal(encode('\ud800', 'x'.repeat(600)), `*2\r\n$3\r\n\xef\xbf\xbd\r\n$600\r\n${'x'.repeat(600)}\r\n`);
});

test('durations and moments', () => {
  assert.deepEqual(['250ms', '30s', '1h30m', '7d', '1h0.001s', '0s'].map(parseDuration), [250, 30_000, 5_400_000, 604_800_000, 3_600_001, 0]);
  assert.deepEqual(['', '5', 's', '-1s', '1 s', '1w', 'a while'].map(parseDuration), [null, null, null, null, null, null, null]);
  assert.equal(toMillis('x', 1.6), 2);
  for (const value of [-1, NaN, Infinity, 'soon', '5', null, {}, new Date()]) assert.match(invalidOf(() => toMillis('processIn', value as never)), /^processIn: /);
  assert.equal(wireMoment('x', new Date(1_900_000_000_123)), '1900000000.123');
  assert.equal(wireMoment('x', 1_900_000_000_000), '1900000000.000');
  for (const value of [NaN, new Date('never'), '2030-01-01', null]) assert.match(invalidOf(() => wireMoment('processAt', value as never)), /^processAt: /);
});

test('payloads', () => {
  assert.equal(wirePayload('x'), 'x');
  assert.equal(wirePayload({a: [1, null]}), '{"a":[1,null]}');
  assert.equal(wirePayload(0), '0');
  assert.equal(wirePayload(null), 'null');
  const loop: {self?: unknown} = {};
  loop.self = loop;
  for (const value of [undefined, () => 1, 1n, loop]) assert.match(invalidOf(() => wirePayload(value)), /^payload: /);
});

test('ids are UUIDs of version 7: unique, and in the order of their time', () => {
  const ids = Array.from({length: 5000}, () => uuid7());
  assert.equal(new Set(ids).size, 5000);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(uuid7(1_645_557_742_000).slice(0, 14), '017f22e2-79b0-');
});

test('reasons', () => {
  assert.equal(reasonOf(new TypeError('no route')), 'TypeError: no route');
  assert.equal(reasonOf('just text'), 'just text');
  assert.equal(reasonOf(new Dead('no such order')), 'no such order');
  assert.equal(reasonOf(new RetryIn('5s', 'not yet')), 'not yet');
  assert.equal(reasonOf(undefined), 'undefined');
  assert.equal(reasonOf(Object.create(null)), 'an error without a text');
  assert.equal(reasonOf('a\u0000b\tc\nd\u009be'), 'a b\tc\nd e');
  assert.equal(reasonOf(`x${'€'.repeat(999)}`), `x${'€'.repeat(333)}`);
  assert.equal(Buffer.byteLength(reasonOf('\ud83d\udd52'.repeat(300))), 1000);
  assert.equal(reasonOf('\ud83d'), '\ufffd');
});

test('options', () => {
  assert.deepEqual([settingsOf({server: 'queue.example:1234'}).host, settingsOf({server: '[::1]:9278'}).host], ['queue.example', '::1']);
  assert.equal(settingsOf({timeout: '3s'}).timeout, 3000);
  for (const server of ['', 'host', 'host:', 'host:70000', '::1:9278', 'http://host:1']) assert.match(invalidOf(() => settingsOf({server})), /^server: /);
  assert.match(invalidOf(() => settingsOf({host: 'x'} as never)), /^host: .*Client/);
  assert.match(invalidOf(() => settingsOf({maxPending: 0})), /^maxPending: /);
  assert.match(invalidOf(() => workerSettingsOf({concurrency: 0})), /^concurrency: /);
  assert.match(invalidOf(() => workerSettingsOf({grace: 'soon'})), /^grace: /);
});
