// HTTP v1, which is all that the dashboard asks. Addresses are relative, so that it works below any path of a proxy.
import {Store} from './store';

export type State = 'delayed' | 'ready' | 'reserved' | 'done' | 'dead';
export const states: readonly State[] = ['delayed', 'ready', 'reserved', 'done', 'dead'];
export type Counts = Record<State, number>;
export type Tallies = Record<'pushed' | 'popped' | 'acked' | 'nacked' | 'expired' | 'died' | 'cancelled', number>;
export type Lateness = {p50: number; p99: number};

export type Topic = {
  topic: string;
  counts: Counts;
  oldest_ready_at?: string;
  oldest_lease_at?: string;
  since_start: Tallies;
  lateness_ms: Lateness;
  waiters: number;
  paused: boolean;
};
export type Settings = Record<string, unknown> & {paused: boolean; delivery: string};
export type TopicFigures = Omit<Topic, 'paused'> & {delivery_problem?: string; settings: Settings};
export type Totals = {
  counts: Counts;
  since_start: Tallies;
  lateness_ms: Lateness;
  waiters: number;
  jobs: number;
  topics: number;
  memory_bytes: number;
  disk_bytes: number;
  live_bytes: number;
  commits: number;
  schedules: number;
};
export type Headers = Record<string, string>;
export type Job = {
  topic: string;
  id: string;
  state: State;
  body?: unknown;
  body_base64?: string;
  content_type?: string;
  headers?: Headers;
  due_at: string;
  pushed_at: string;
  attempts: number;
  priority: number;
  group?: string;
  handed_over_at?: string;
  lease_until?: string;
  kept_until?: string;
  callback?: string;
  callback_header_names?: string[];
  delivery_problem?: string;
  outcome?: string;
  cancel_requested?: true;
};
export type Schedule = {
  name: string;
  state: 'active' | 'paused' | 'ended';
  next_at?: string;
  next_local?: string;
  cron?: string;
  zone?: string;
  every?: string;
  start?: string;
  end?: string;
  runs?: number;
  jitter?: string;
  overlap: string;
  missed: string;
  topic: string;
  body?: unknown;
  body_base64?: string;
  content_type?: string;
  headers?: Headers;
  callback_header_names?: string[];
  created_at: string;
  occurrences: {made: number; skipped: number; missed: number};
  previous?: {topic: string; id: string; at: string};
  from_configuration?: true;
  moving?: true;
  problem?: string;
} & Record<string, unknown>;
export type Forecast = {from: string; to: string; bins: number[]; scheduled: number[]; scheduled_complete: boolean; resolution_ms: number};
export type Host = {
  host: string;
  breaker: 'closed' | 'open' | 'half_open';
  open_until?: string;
  failures_in_a_row: number;
  in_flight: number;
  waiting: number;
  calls: number;
  failed: number;
  latency_ms: Lateness;
  last_call_at: string;
};
export type FailedCall = {at: string; topic: string; id: string; host: string; attempt: number; dead: boolean; status?: number; error?: string; took_ms: number};
export type Callbacks = {in_flight: number; waiting: number; delivered: number; failed: number; hosts: Host[]; failures: FailedCall[]};
export type WaitingPop = {client: string; protocol: string; token?: string; topics: string[]; since: string; until: string};
export type Consumers = {connections: number; waiting_total: number; waiting: WaitingPop[]};
export type ServerInfo = {
  version: string;
  engine: string;
  now: string;
  started_at: string;
  resp: string;
  tokens: boolean;
  name?: string;
  scopes: string[];
  topics: string[];
};

/** What the server said no with, or why it said nothing. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly field?: string,
  ) {
    super(detail);
  }
}

const tokenName = 'delayq-token';
export const token = new Store<string>(sessionStorage.getItem(tokenName) ?? '');
export function signIn(secret: string) {
  sessionStorage.setItem(tokenName, secret);
  token.set(secret);
}
export function signOut() {
  sessionStorage.removeItem(tokenName);
  token.set('');
  needsToken.set(true);
}
/** The server wants a token, or another one. */
export const needsToken = new Store(false);

export const base = new URL('.', location.href.replace(/[?#].*/, ''));

export function headers(): Record<string, string> {
  return token.value ? {Authorization: `Bearer ${token.value}`} : {};
}

export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(new URL(path, base), {...init, headers: {...headers(), ...init.headers}});
  } catch (problem) {
    if (init.signal?.aborted) throw problem;
    throw new Refusal(0, 'unreachable', String((problem as Error).message));
  }
  if (response.ok) return response;
  const said = await response.text();
  let problem: {code?: string; detail?: string; field?: string} = {};
  try {
    problem = JSON.parse(said);
  } catch {
    // A proxy said it, in words of its own.
  }
  if (response.status === 401) needsToken.set(true);
  throw new Refusal(response.status, problem.code ?? 'internal', problem.detail ?? `${response.status} ${response.statusText}`, problem.field);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, {signal})).json();
}
export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = {method};
  if (body !== undefined) {
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
    init.headers = {'Content-Type': 'application/json'};
  }
  return (await ask(path, init)).json();
}

export function query(values: Record<string, string | number | boolean | undefined>): string {
  const parts = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return parts.length ? `?${parts.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}` : '';
}
const part = encodeURIComponent;
export const topicPath = (topic: string) => `v1/topics/${part(topic)}`;
export const jobPath = (topic: string, id: string) => `${topicPath(topic)}/jobs/${part(id)}`;
export const schedulePath = (name: string) => `v1/schedules/${part(name)}`;

// ---- what the token may do
export const server = new Store<ServerInfo | undefined>(undefined);
export async function loadServer() {
  const info = await get<ServerInfo>('v1/server');
  needsToken.set(false);
  clockAhead = Date.parse(info.now) - Date.now();
  server.set(info);
}
let clockAhead = 0;
/** Now, by the clock of the server: its due times are compared with it. */
export const serverNow = () => Date.now() + clockAhead;

function covers(pattern: string, topic: string) {
  return pattern === '*' || pattern === topic || (pattern.endsWith('*') && topic.startsWith(pattern.slice(0, -1)));
}
/** Whether the token allows this, to that topic if one is named. */
export function may(scope: 'push' | 'consume' | 'read' | 'schedule' | 'admin', topic?: string): boolean {
  const info = server.value;
  if (!info) return false;
  if (!info.scopes.includes(scope) && !info.scopes.includes('admin')) return false;
  return topic === undefined || info.topics.some((pattern) => covers(pattern, topic));
}
