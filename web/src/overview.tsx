// How the server is, what needs attention, and what is coming.
import type {ComponentChildren} from 'preact';
import {useState} from 'preact/hooks';
import {ask, get, may, server, serverNow, topicPath, type Callbacks, type Schedule, type Topic, type TopicFigures} from './api';
import {LineChart} from './chart';
import {bytes, duration, milliseconds, number, rate, short} from './format';
import {Future} from './future';
import {activity, beat, connection, history, rateNames, topics, totals, type RateName} from './live';
import {link} from './route';
import {useStore} from './store';
import {t, type Phrase} from './text';
import {Alert, Button, Code, Empty, explain, Head, Icon, inOwnZone, Panel, stateName, useLoad} from './ui';
import {TopicTable} from './topics';

export const rateLabels: Record<RateName, Phrase> = {pushed: 'pushed', popped: 'handed over', acked: 'acked', failed: 'failed'};
const rateColours: Record<RateName, string> = {pushed: 'chart-1', popped: 'chart-2', acked: 'chart-3', failed: 'bad'};

function Tile({name, value, note, to, tone}: {name: string; value: ComponentChildren; note?: ComponentChildren; to?: string; tone?: string}) {
  const inside = (
    <>
      <span class="name">{name}</span>
      <b>{value}</b>
      <span class="quiet">{note}</span>
    </>
  );
  return to ? <a class={`tile ${tone ?? ''}`} href={to}>{inside}</a> : <div class={`tile ${tone ?? ''}`}>{inside}</div>;
}

const sum = (list: readonly number[]) => list.reduce((a, b) => a + b, 0);
/** How long ready jobs may wait without a consumer before it is said. */
const longestWait = 10_000;
/** The same where consumers are at work: they are too slow, or held up. */
const longestBacklog = 60_000;
/** So many failures within a minute are said when fewer attempts succeed. */
const leastFailures = 3;

type Concern = {key: string; tone: 'bad' | 'warn'; text: string; more?: string; to: string; weight: number};
function concerns(list: Iterable<Topic>, callbacks: Callbacks | undefined, schedules: Schedule[], problems: Record<string, string>): Concern[] {
  const found: Concern[] = [];
  for (const topic of list) {
    const name = topic.topic;
    const died = sum(activity.get(name)?.died ?? []);
    if (died > 0) {
      found.push({key: `${name} died`, tone: 'bad', weight: 3e9 + died, to: link(['jobs'], {topic: name, state: 'dead'}),
        text: t('{topic}: {n} more job has died within a minute|{topic}: {n} more jobs have died within a minute', {topic: name, n: died}), more: t('{n} dead', {n: number(topic.counts.dead)})});
    } else if (topic.counts.dead > 0) {
      found.push({key: `${name} dead`, tone: 'warn', weight: 1e9 + Math.min(1e8, topic.counts.dead), to: link(['jobs'], {topic: name, state: 'dead'}),
        text: t('{topic}: {n} dead job|{topic}: {n} dead jobs', {topic: name, n: topic.counts.dead})});
    }
    const waited = topic.oldest_ready_at ? serverNow() - Date.parse(topic.oldest_ready_at) : 0;
    if (topic.counts.ready > 0 && problems[name]) {
      found.push({key: `${name} stuck`, tone: 'bad', weight: 4e9, to: link(['topics', name]), text: t('{topic}: {n} ready job cannot leave|{topic}: {n} ready jobs cannot leave', {topic: name, n: topic.counts.ready}), more: inOwnZone(problems[name])});
    } else if (topic.counts.ready > 0 && topic.paused) {
      found.push({key: `${name} paused`, tone: 'warn', weight: 2e9, to: link(['topics', name]), text: t('{topic} is paused, with {n} ready job|{topic} is paused, with {n} ready jobs', {topic: name, n: topic.counts.ready})});
    } else if (topic.counts.ready > 0 && topic.waiters === 0 && topic.counts.reserved === 0 && waited > longestWait) {
      found.push({key: `${name} waits`, tone: 'bad', weight: 2.5e9 + Math.min(1e8, waited / 1000), to: link(['jobs'], {topic: name, state: 'ready'}),
        text: t('{topic}: {n} ready job, and no consumer|{topic}: {n} ready jobs, and no consumer', {topic: name, n: topic.counts.ready}), more: t('the oldest has waited for {time}', {time: duration(waited)})});
    } else if (topic.counts.ready > 0 && waited > longestBacklog) {
      found.push({key: `${name} lags`, tone: 'warn', weight: 1.5e9 + Math.min(1e8, waited / 1000), to: link(['jobs'], {topic: name, state: 'ready'}),
        text: t('{topic}: {n} ready job waits for its consumers|{topic}: {n} ready jobs wait for their consumers', {topic: name, n: topic.counts.ready}), more: t('the oldest has waited for {time}', {time: duration(waited)})});
    }
    const [failed, acked] = [sum(activity.get(name)?.failed ?? []), sum(activity.get(name)?.acked ?? [])];
    if (failed >= leastFailures && failed > acked) {
      found.push({key: `${name} fails`, tone: 'bad', weight: 2.2e9 + failed, to: link(['jobs'], {topic: name, state: 'delayed'}),
        text: t('{topic}: {n} attempts failed within a minute', {topic: name, n: failed}), more: t('{n} acked', {n: number(acked)})});
    }
  }
  for (const host of callbacks?.hosts ?? []) {
    if (host.breaker === 'closed') continue;
    found.push({key: host.host, tone: 'bad', weight: 3.5e9, to: link(['callbacks']), text: t('{host} is not called: its last calls failed', {host: host.host}), more: t('{n} in a row', {n: host.failures_in_a_row})});
  }
  for (const schedule of schedules) {
    if (schedule.problem) found.push({key: `schedule ${schedule.name}`, tone: 'bad', weight: 3e9, to: link(['schedules', schedule.name]), text: t('The schedule {name} makes no jobs', {name: schedule.name}), more: inOwnZone(schedule.problem)});
  }
  return found.sort((a, b) => b.weight - a.weight);
}

/** Why jobs of the topics that stand still cannot leave, as the server says it. */
async function askProblems(signal: AbortSignal): Promise<Record<string, string>> {
  const still = [...topics.value.values()].filter((topic) => topic.counts.ready > 0 && topic.waiters === 0 && topic.counts.reserved === 0).slice(0, 10);
  const figures = await Promise.all(still.map((topic) => get<TopicFigures>(topicPath(topic.topic), signal)));
  return Object.fromEntries(figures.filter((each) => each.delivery_problem).map((each) => [each.topic, each.delivery_problem!]));
}

function Attention() {
  useStore(beat);
  const list = useStore(topics);
  const callbacks = useLoad('callbacks', async (signal) => (may('read', '*') ? get<Callbacks>('v1/callbacks', signal) : undefined), 5).stale;
  const schedules = useLoad('schedules', async (signal) => (may('read') || may('schedule') ? (await get<{schedules: Schedule[]}>('v1/schedules?limit=1000', signal)).schedules : []), 15).stale ?? [];
  const problems = useLoad('problems', askProblems, 5).stale ?? {};
  const found = concerns(list.values(), callbacks, schedules, problems);
  const [most, setMost] = useState(5);
  return (
    <Panel title={t('Needs attention')} class="attention">
      {found.length === 0 ? (
        <p class="calm"><Icon name="check" />{t('Nothing: no dead jobs, no topic without consumers, no host that fails.')}</p>
      ) : (
        <ul>
          {found.slice(0, most).map((each) => (
            <li key={each.key} class={each.tone}>
              <a href={each.to}><i class="dot" /><span>{each.text}{each.more && <span class="quiet"> · {each.more}</span>}</span></a>
            </li>
          ))}
          {found.length > most && <li><Button look="quiet" onClick={() => setMost(most + 50)}>{t('and {n} more', {n: found.length - most})}</Button></li>}
        </ul>
      )}
    </Panel>
  );
}

function Rates() {
  const version = useStore(beat);
  const last = (name: RateName) => history[name][history[name].length - 1] ?? 0;
  const lines = rateNames.map((name) => ({label: t(rateLabels[name]), colour: rateColours[name], values: history[name]}));
  return (
    <Panel title={t('Now, per second')} class="rates">
      <LineChart time={history.time} lines={lines} version={version} height={240}
        label={t('Rates of the last two minutes: {list}', {list: rateNames.map((name) => `${t(rateLabels[name])} ${rate(last(name))}/s`).join(', ')})} />
      <div class="legend">
        {rateNames.map((name) => (
          <span key={name}><i class={`swatch ${rateColours[name]}`} />{t(rateLabels[name])} <b>{rate(last(name))}</b></span>
        ))}
      </div>
    </Panel>
  );
}

export function Start() {
  const info = server.value;
  const port = info?.resp.split(':').pop() ?? '9278';
  return (
    <Panel class="start">
      <Empty title={t('No jobs yet')}>{t('Push the first one; this page shows it at once. Any Redis client works:')}</Empty>
      <Code text={`redis-cli -p ${port} PUSH order 30s '{"uid":1}'`} />
      <p class="quiet">{t('or over HTTP:')}</p>
      <Code text={`curl ${new URL('v1/topics/order/jobs', location.href.replace(/#.*/, ''))} -d '{"body": {"uid": 1}, "delay": "30s"}'`} />
      {may('push') && <p><a class="button main" href={link(['push'])}><Icon name="plus" />{t('Push a job from here')}</a></p>}
    </Panel>
  );
}

function Health() {
  const health = useLoad('ready', async (signal) => {
    try {
      await ask('readyz', {signal});
      return '';
    } catch (problem) {
      return explain(problem);
    }
  }, 5).stale;
  const info = useStore(server);
  useStore(beat);
  const up = info ? duration(serverNow() - Date.parse(info.started_at)) : '';
  const is = useStore(connection);
  return (
    <>
      {health && is !== 'lost' && <Alert tone="bad">{t('Pushes are refused: {why}', {why: health})}</Alert>}
      <p class="quiet facts">
        <span class={`badge ${health ? 'state-dead' : 'good'}`}>{health ? t('refuses pushes') : t('accepts pushes')}</span>
        {info && <span>{t('engine {name}', {name: info.engine})}</span>}
        {info && <span>{t('up for {time}', {time: up})}</span>}
      </p>
    </>
  );
}

export function Overview() {
  const now = useStore(totals);
  const list = useStore(topics);
  const is = useStore(connection);
  useStore(beat);
  const counts = now?.counts;
  const last = (name: RateName) => history[name][history[name].length - 1] ?? 0;
  const isEmpty = now && now.jobs === 0 && list.size === 0 && now.schedules === 0;
  const one = (state: 'delayed' | 'ready' | 'reserved' | 'dead') => link(['jobs'], {state});
  return (
    <>
      <Head title={t('Overview')} lead={<Health />} />
      <div class="tiles">
        <Tile name={stateName('delayed')} value={short(counts?.delayed ?? 0)} note={t('{rate}/s pushed', {rate: rate(last('pushed'))})} to={one('delayed')} />
        <Tile name={stateName('ready')} value={short(counts?.ready ?? 0)} note={t('{n} consumer waits|{n} consumers wait', {n: now?.waiters ?? 0})} to={one('ready')} />
        <Tile name={stateName('reserved')} value={short(counts?.reserved ?? 0)} note={t('{rate}/s acked', {rate: rate(last('acked'))})} to={one('reserved')} />
        <Tile name={stateName('dead')} value={short(counts?.dead ?? 0)} note={t('{n} since the start', {n: number(now?.since_start.died ?? 0)})} to={one('dead')} tone={counts?.dead ? 'bad' : ''} />
        <Tile name={t('lateness')} value={milliseconds(now?.lateness_ms.p50 ?? 0)} note={t('p99 {time}', {time: milliseconds(now?.lateness_ms.p99 ?? 0)})} />
        {is !== 'polling' && <Tile name={t('memory')} value={bytes(now?.memory_bytes ?? 0)} note={now?.disk_bytes ? t('disk {size}', {size: bytes(now.disk_bytes)}) : t('engine')} />}
      </div>
      {isEmpty ? <Start /> : (
        <>
          <Attention />
          <div class="two">
            {may('read') && <Future />}
            <Rates />
          </div>
          <TopicTable most={8} />
        </>
      )}
    </>
  );
}
