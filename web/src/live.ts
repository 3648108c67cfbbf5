// What the server tells while the page is open: its totals and its topics. Read with fetch, so that the token is a header.
import {ask, get, needsToken, query, Refusal, type Topic, type Totals} from './api';
import {Store} from './store';

/** `polling`: the token may not read the events of all topics, so its own topics are asked for. */
export type Connection = 'connecting' | 'live' | 'polling' | 'lost';
export const connection = new Store<Connection>('connecting');
export const totals = new Store<Totals | undefined>(undefined);
export const topics = new Store<ReadonlyMap<string, Topic>>(new Map());
/** Whether there are topics beyond those that are watched. */
export const hasMoreTopics = new Store(false);
/** Grows with every sample: views that draw rates follow it. */
export const beat = new Store(0);

const kept = 120;
export const rateNames = ['pushed', 'popped', 'acked', 'failed'] as const;
export type RateName = (typeof rateNames)[number];
export const history: {time: number[]} & Record<RateName, number[]> = {time: [], pushed: [], popped: [], acked: [], failed: []};
/** Per topic: how much happened in each of the last samples, and how it ended. */
export const activity = new Map<string, Record<'rates' | 'died' | 'failed' | 'acked', number[]>>();
const keptOfTopic = 60;
/** The server watches so many topics, the first by name. The others are asked for page by page, more rarely. */
const mostWatched = 1000;
const mostPages = 20;
const farEvery = 30_000;
const watched = new Set<string>();
let farAt = 0;

const count = (totals: {since_start: Totals['since_start']}) => {
  const {pushed, popped, acked, nacked, expired} = totals.since_start;
  return {pushed, popped, acked, failed: nacked + expired};
};

let before: {at: number; totals: ReturnType<typeof count>; topics: Map<string, Topic>} | undefined;

function pushKept<T>(list: T[], value: T, most: number) {
  list.push(value);
  if (list.length > most) list.splice(0, list.length - most);
}

/** Takes a sample: the rates are what has changed since the one before. */
function sample() {
  const now = performance.now();
  const current = totals.value;
  if (!current) return;
  const counted = count(current);
  if (before) {
    const seconds = Math.max(0.2, (now - before.at) / 1000);
    pushKept(history.time, Date.now() / 1000, kept);
    for (const name of rateNames) pushKept(history[name], Math.max(0, counted[name] - before.totals[name]) / seconds, kept);
    for (const [name, topic] of topics.value) if (watched.has(name)) sampleTopic(topic, before.topics.get(name), seconds, keptOfTopic);
    for (const name of activity.keys()) if (!topics.value.has(name)) activity.delete(name);
  }
  before = {at: now, totals: counted, topics: new Map(topics.value)};
  beat.set(beat.value + 1);
}

function sampleTopic(topic: Topic, old: Topic | undefined, seconds: number, most: number) {
  let own = activity.get(topic.topic);
  if (!own) activity.set(topic.topic, (own = {rates: [], died: [], failed: [], acked: []}));
  const difference = (key: keyof Topic['since_start']) => (old ? Math.max(0, topic.since_start[key] - old.since_start[key]) : 0);
  pushKept(own.rates, (difference('pushed') + difference('popped')) / seconds, most);
  pushKept(own.died, difference('died'), most);
  pushKept(own.failed, difference('nacked') + difference('expired'), most);
  pushKept(own.acked, difference('acked'), most);
}

let pending: Map<string, Topic> | undefined;
let isSampleDue = false;
/** Events of one turn are shown together. */
function takeEvent(name: string, data: string) {
  if (name === 'stats') {
    totals.set(JSON.parse(data));
  } else if (name === 'topic') {
    const topic: Topic = JSON.parse(data);
    (pending ??= new Map(topics.value)).set(topic.topic, topic);
    watched.add(topic.topic);
  } else if (name === 'gone') {
    const {topic} = JSON.parse(data);
    (pending ??= new Map(topics.value)).delete(topic);
    watched.delete(topic);
  }
  isSampleDue = true;
}
function flush() {
  if (pending) {
    topics.set(pending);
    hasMoreTopics.set(pending.size >= mostWatched * mostPages);
  }
  pending = undefined;
  if (isSampleDue) sample();
  isSampleDue = false;
}

const pause = (milliseconds: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), {once: true});
  });

/** The server says something every 15 seconds; a connection that is silent for longer is dead. */
const longestSilence = 25_000;

async function allTopics(signal: AbortSignal): Promise<Map<string, Topic>> {
  const all = new Map<string, Topic>();
  let cursor: string | undefined;
  for (let pages = 0; pages < mostPages && cursor !== ''; ++pages) {
    const page: {topics: Topic[]; cursor: string} = await get(`v1/topics${query({limit: 1000, cursor})}`, signal);
    for (const topic of page.topics) all.set(topic.topic, topic);
    cursor = page.cursor;
  }
  return all;
}

/** Brings the topics that the server does not watch. */
async function walkFar(signal: AbortSignal) {
  for (let wait = 0; !signal.aborted; await pause(wait, signal)) {
    wait = watched.size < mostWatched ? 1000 : document.hidden ? 4 * farEvery : farEvery;
    if (watched.size < mostWatched) continue;
    const all = await allTopics(signal).catch(() => undefined);
    if (!all || signal.aborted) continue;
    const now = performance.now();
    const seconds = (now - farAt) / 1000;
    const next = new Map([...topics.value].filter(([name]) => watched.has(name)));
    for (const [name, topic] of all) {
      if (watched.has(name)) continue;
      next.set(name, topic);
      if (farAt) sampleTopic(topic, topics.value.get(name), seconds, Math.ceil(60_000 / farEvery));
    }
    farAt = now;
    pending = next;
    flush();
  }
}

async function stream(signal: AbortSignal) {
  const ends = new AbortController();
  signal.addEventListener('abort', () => ends.abort(), {once: true});
  let watchdog = 0;
  const hear = () => {
    clearTimeout(watchdog);
    watchdog = window.setTimeout(() => ends.abort(), longestSilence);
  };
  hear();
  try {
    const response = await ask('v1/events?interval=1s', {signal: ends.signal});
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const fresh = new Set<string>();
    let isFirst = true;
    let text = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      hear();
      text += value;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = text.slice(0, end);
        text = text.slice(end + 2);
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
        if (!name) continue;
        takeEvent(name, data);
        if (isFirst && name === 'topic') fresh.add(JSON.parse(data).topic);
      }
      if (isFirst && totals.value) {
        // What was shown before the connection was lost may be gone.
        for (const name of topics.value.keys()) {
          if (fresh.has(name)) continue;
          (pending ??= new Map(topics.value)).delete(name);
          watched.delete(name);
        }
        isFirst = false;
        void walkFar(ends.signal);
      }
      connection.set('live');
      flush();
    }
  } finally {
    clearTimeout(watchdog);
    ends.abort();
  }
}

const addUp = (list: Topic[]): Totals => {
  const sum: Totals = {
    counts: {delayed: 0, ready: 0, reserved: 0, done: 0, dead: 0},
    since_start: {pushed: 0, popped: 0, acked: 0, nacked: 0, expired: 0, died: 0, cancelled: 0},
    lateness_ms: {p50: 0, p99: 0}, waiters: 0, jobs: 0, topics: list.length, memory_bytes: 0, disk_bytes: 0, live_bytes: 0, commits: 0, schedules: 0,
  };
  for (const topic of list) {
    for (const state of Object.keys(sum.counts) as (keyof typeof sum.counts)[]) {
      sum.counts[state] += topic.counts[state];
      sum.jobs += topic.counts[state];
    }
    for (const name of Object.keys(sum.since_start) as (keyof typeof sum.since_start)[]) sum.since_start[name] += topic.since_start[name];
    sum.lateness_ms = {p50: Math.max(sum.lateness_ms.p50, topic.lateness_ms.p50), p99: Math.max(sum.lateness_ms.p99, topic.lateness_ms.p99)};
    sum.waiters += topic.waiters;
  }
  return sum;
};

async function poll(signal: AbortSignal) {
  while (!signal.aborted) {
    pending = await allTopics(signal);
    for (const name of pending.keys()) watched.add(name);
    totals.set(addUp([...pending.values()]));
    isSampleDue = true;
    connection.set('polling');
    flush();
    await pause(topics.value.size < mostWatched ? 2000 : 10_000, signal);
  }
}

let stop: AbortController | undefined;
/** Follows the server until the token changes; begins again by itself when the connection is lost. */
export async function follow() {
  stop?.abort();
  stop = new AbortController();
  const {signal} = stop;
  let isForbidden = false;
  before = undefined;
  for (let wait = 500; !signal.aborted && !needsToken.value; ) {
    try {
      await (isForbidden ? poll(signal) : stream(signal));
      wait = 500;
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Refusal && problem.status === 403 && !isForbidden) {
        isForbidden = true;
        continue;
      }
      if (problem instanceof Refusal && problem.status === 401) return;
    }
    if (signal.aborted) return;
    connection.set('lost');
    before = undefined;
    await pause(wait, signal);
    wait = Math.min(5000, wait * 1.6);
  }
}

// Nothing happens, nothing is told: the rates are zero then.
setInterval(() => {
  if (connection.value === 'live' && before && performance.now() - before.at > 1600) sample();
}, 1000);

