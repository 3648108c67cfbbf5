// All topics, and one of them: its figures, its settings, and what can be done with all of its jobs.
import {useMemo, useState} from 'preact/hooks';
import {get, may, send, states, topicPath, type Settings, type State, type Topic, type TopicFigures} from './api';
import {Sparkline} from './chart';
import {duration, milliseconds, number, rate, short} from './format';
import {Future} from './future';
import {activity, beat, hasMoreTopics, topics} from './live';
import {become, go, link, route} from './route';
import {serverNow} from './api';
import {useStore} from './store';
import {t} from './text';
import {Act, Alert, Button, Confirm, Empty, Field, Head, Icon, inOwnZone, note, Panel, Problem, Sortable, stateName, useLoad} from './ui';

type Column = 'topic' | State | 'rate' | 'late' | 'oldest' | 'waiters';
const rateOf = (name: string) => activity.get(name)?.rates.at(-1) ?? 0;
const oldest = (topic: Topic) => (topic.oldest_ready_at && topic.counts.ready ? serverNow() - Date.parse(topic.oldest_ready_at) : 0);
const value: Record<Column, (topic: Topic) => number | string> = {
  topic: (topic) => topic.topic,
  delayed: (topic) => topic.counts.delayed,
  ready: (topic) => topic.counts.ready,
  reserved: (topic) => topic.counts.reserved,
  done: (topic) => topic.counts.done,
  dead: (topic) => topic.counts.dead,
  rate: (topic) => rateOf(topic.topic),
  late: (topic) => topic.lateness_ms.p99,
  oldest,
  waiters: (topic) => topic.waiters,
};
const jobsOf = (topic: Topic) => states.reduce((total, state) => total + topic.counts[state], 0);

export function PauseButton({topic, paused}: {topic: string; paused: boolean}) {
  if (!may('admin', topic)) return null;
  const act = async () => {
    await send('POST', `${topicPath(topic)}/${paused ? 'resume' : 'pause'}`);
    const now = topics.value.get(topic);
    if (now) topics.set(new Map(topics.value).set(topic, {...now, paused: !paused}));
    note(paused ? t('{topic} goes on.', {topic}) : t('{topic} is paused: no job of it is handed over.', {topic}));
  };
  return <Act look="quiet" icon={paused ? 'play' : 'pause'} hint={paused ? t('Resume {topic}', {topic}) : t('Pause {topic}', {topic})} act={act} />;
}

const step = 100;
export function TopicTable({most}: {most?: number}) {
  const list = useStore(topics);
  useStore(beat);
  const {query} = useStore(route);
  const [sort, setSort] = useState<{by: Column; down: boolean}>(most ? {by: 'rate', down: true} : {by: 'topic', down: false});
  const [shown, setShown] = useState(most ?? step);
  const filter = most ? '' : query.filter ?? '';
  const rows = [...list.values()].filter((topic) => topic.topic.includes(filter)).sort((a, b) => {
    const [left, right] = [value[sort.by](a), value[sort.by](b)];
    const order = left < right ? -1 : left > right ? 1 : 0;
    return (sort.down ? -order : order) || jobsOf(b) - jobsOf(a) || (a.topic < b.topic ? -1 : 1);
  });
  const onSort = (by: Column) => setSort((old) => ({by, down: old.by === by ? !old.down : by !== 'topic'}));
  const column = (name: Column, text: string, extra = 'count') => <Sortable name={name} by={sort.by} down={sort.down} onSort={onSort} class={extra}>{text}</Sortable>;
  return (
    <Panel title={most ? t('Topics') : undefined} class="table-panel" tools={most ? <a class="button quiet" href={link(['topics'])}>{t('All {n}', {n: number(list.size)})}</a> : (
      <>
        <label class="search">
          <Icon name="search" />
          <input type="search" aria-label={t('Find a topic')} placeholder={t('Find a topic')} value={filter} onInput={(event) => become(link(['topics'], {filter: event.currentTarget.value}))} />
        </label>
        <span class="quiet">{t('{n} topic|{n} topics', {n: rows.length})}{hasMoreTopics.value ? '+' : ''}</span>
      </>
    )}>
      {rows.length === 0 ? (
        <Empty title={filter ? t('No topic like this') : t('No topics yet')}>
          {filter ? <a href={link(['topics', filter])}>{t('Look at {topic} all the same', {topic: filter})}</a> : t('A topic is there with its first job.')}
        </Empty>
      ) : (
        <div class="scroll" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {column('topic', t('topic'), '')}
                {states.map((state) => column(state, stateName(state), `count ${state === 'done' || state === 'reserved' ? 'hide-small' : ''}`))}
                {column('rate', t('per second'), 'count hide-small')}
                {column('late', t('late (p99)'), 'count hide-small')}
                {column('oldest', t('oldest ready'), 'count hide-medium')}
                {column('waiters', t('waiting'), 'count hide-medium')}
                <th><span class="hidden">{t('Actions')}</span></th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, shown).map((topic) => (
                <tr key={topic.topic} data-topic={topic.topic}>
                  <td class="name"><a href={link(['topics', topic.topic])}>{topic.topic}</a>{topic.paused && <span class="badge warn">{t('paused')}</span>}</td>
                  {states.map((state) => (
                    <td key={state} class={`count ${state === 'dead' && topic.counts.dead ? 'bad' : ''} ${topic.counts[state] ? '' : 'zero'} ${state === 'done' || state === 'reserved' ? 'hide-small' : ''}`}>
                      <a href={link(['jobs'], {topic: topic.topic, state})} tabIndex={-1}>{short(topic.counts[state])}</a>
                    </td>
                  ))}
                  <td class="count hide-small with-spark"><Sparkline values={activity.get(topic.topic)?.rates ?? []} /><span>{rate(rateOf(topic.topic))}</span></td>
                  <td class="count hide-small">{milliseconds(topic.lateness_ms.p99)}</td>
                  <td class="count hide-medium">{oldest(topic) > 0 ? duration(oldest(topic)) : '–'}</td>
                  <td class="count hide-medium">{number(topic.waiters)}</td>
                  <td class="actions"><PauseButton topic={topic.topic} paused={topic.paused} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {!most && rows.length > shown && <footer><Button onClick={() => setShown(shown + step)}>{t('Show {n} more', {n: Math.min(step, rows.length - shown)})}</Button></footer>}
    </Panel>
  );
}

export function Topics() {
  return (
    <>
      <Head title={t('Topics')}>{may('push') && <a class="button" href={link(['push'])}><Icon name="plus" />{t('Push a job')}</a>}</Head>
      <TopicTable />
    </>
  );
}

// ---- settings
/** `lines`: what is set is never shown; new lines replace it. */
type Kind = 'number' | 'text' | 'duration' | 'lines' | string[];
const groups: {name: string; rows: [string, Kind][]}[] = [
  {name: 'Retry', rows: [['attempts', 'number'], ['backoff', 'text'], ['lease', 'duration'], ['on_dead', 'text']]},
  {name: 'Limits', rows: [['rate', 'text'], ['concurrency', 'number'], ['priority', 'number']]},
  {name: 'Kept', rows: [['keep_done.time', 'duration'], ['keep_done.count', 'number'], ['keep_dead.time', 'duration'], ['keep_dead.count', 'number']]},
  {name: 'Delivery', rows: [['delivery', ['pull', 'webhook', 'redis_list', 'redis_stream', 'kafka_topic']], ['callback', 'text'], ['callback_method', ['', 'POST', 'PUT', 'PATCH', 'DELETE']], ['callback_timeout', 'duration'], ['callback_format', ['webhook', 'cloudevents', 'callback-api']], ['callback_headers', 'lines'], ['callback_secrets', 'lines'],
    ['redis_key', 'text'], ['redis_content', ['job', 'id']], ['redis_maxlen', 'number'], ['kafka_topic', 'text'], ['kafka_key', ['id', 'group', 'none']], ['kafka_content', ['body', 'job', 'id']], ['kafka_headers', ['all', 'id', 'none']]]},
];
const groupNames = {Retry: () => t('Retry'), Limits: () => t('Limits'), Kept: () => t('How long jobs are kept'), Delivery: () => t('Delivery')} as Record<string, () => string>;

const kindOf = (path: string) => groups.flatMap((group) => group.rows).find(([name]) => name === path)![1];
/** How many lines are set of what is not shown. */
const countOf = (settings: Settings, path: string) => Number(settings[`${path.slice(0, -1)}_count`] ?? 0);

function read(settings: Settings, path: string): string {
  const [first, second] = path.split('.');
  if (kindOf(path) === 'lines') return '';
  const found = settings[first] as Record<string, unknown> | string | number;
  return String(second ? (found as Record<string, unknown>)[second] : found);
}
const isShown = (path: string, delivery: string) =>
  path.startsWith('callback') ? delivery === 'webhook' : path.startsWith('redis_') ? delivery.startsWith('redis_') : path.startsWith('kafka_') ? delivery === 'kafka_topic' : true;

function SettingsForm({topic, settings, onChanged}: {topic: string; settings: Settings; onChanged: () => void}) {
  const [changed, setChanged] = useState<Record<string, string>>({});
  const canChange = may('admin', topic);
  const of = (path: string) => changed[path] ?? read(settings, path);
  const names = Object.keys(changed).filter((path) => changed[path] !== read(settings, path));
  const save = async () => {
    const body: Record<string, unknown> = {};
    for (const path of names) {
      const [first, second] = path.split('.');
      const kind = kindOf(path);
      const said = kind === 'number' ? Number(changed[path]) : kind === 'lines' ? changed[path].split('\n').map((line) => line.trim()).filter(Boolean) : changed[path];
      body[first] = second ? {...(body[first] as object), [second]: said} : said;
    }
    await send('PATCH', topicPath(topic), body);
    setChanged({});
    onChanged();
  };
  const reset = async () => {
    // Secrets and header lines stay: nobody could put them back from here.
    const names = groups.flatMap((group) => group.rows).filter(([, kind]) => kind !== 'lines').map(([path]) => path.split('.')[0]);
    await send('PATCH', topicPath(topic), Object.fromEntries(names.filter((name) => name in settings).map((name) => [name, null])));
    setChanged({});
    onChanged();
  };
  return (
    <Panel title={t('Settings')} tools={canChange && <Act look="quiet" act={reset} done={t('The defaults apply again.')}>{t('Back to the defaults')}</Act>}>
      <div class="settings">
        {groups.map((group) => (
          <fieldset key={group.name} disabled={!canChange}>
            <legend>{groupNames[group.name]()}</legend>
            {group.rows.filter(([path]) => isShown(path, of('delivery'))).map(([path, kind]) => (
              <Field key={path} label={path} hint={kind === 'lines' ? t('{n} is set, and never shown. New lines replace what is set.|{n} are set, and never shown. New lines replace what is set.', {n: countOf(settings, path)}) : path === 'on_dead' ? t('a topic or a URL that is told of each dead job') : path === 'rate' ? t('hand-overs per time, as in 100/1s; 0: no limit') : undefined} class={changed[path] !== undefined && changed[path] !== read(settings, path) ? 'changed' : ''}>
                {(id) => Array.isArray(kind) ? (
                  <select id={id} value={of(path)} onChange={(event) => setChanged({...changed, [path]: event.currentTarget.value})}>
                    {kind.map((each) => <option key={each} value={each}>{each || '–'}</option>)}
                  </select>
                ) : kind === 'lines' ? (
                  <textarea id={id} rows={2} spellcheck={false} placeholder={path === 'callback_headers' ? 'Authorization: Bearer …' : 'whsec_…'} value={of(path)} onInput={(event) => setChanged({...changed, [path]: event.currentTarget.value})} />
                ) : (
                  <input id={id} type={kind === 'number' ? 'number' : 'text'} min={0} spellcheck={false} autocomplete="off" value={of(path)} onInput={(event) => setChanged({...changed, [path]: event.currentTarget.value})} />
                )}
              </Field>
            ))}
          </fieldset>
        ))}
      </div>
      {names.length > 0 && (
        <footer class="save">
          <span>{t('Changed: {names}', {names: names.join(', ')})}</span>
          <Button onClick={() => setChanged({})}>{t('Discard')}</Button>
          <Act look="main" act={save} done={t('The settings are stored.')}>{t('Save')}</Act>
        </footer>
      )}
    </Panel>
  );
}

function Purge({topic, counts, onClose, onDone}: {topic: string; counts: Record<State, number>; onClose: () => void; onDone: () => void}) {
  const parts = states.filter((state) => counts[state] > 0).map((state) => `${number(counts[state])} ${stateName(state)}`);
  const act = async () => {
    const {jobs} = await send<{jobs: number}>('DELETE', topicPath(topic));
    note(t('{n} job is gone.|{n} jobs are gone.', {n: jobs}));
    onDone();
  };
  return (
    <Confirm title={t('Delete all jobs of {topic}?', {topic})} action={t('Delete {n} job|Delete {n} jobs', {n: states.reduce((total, state) => total + counts[state], 0)})} word={topic} act={act} onClose={onClose}>
      <p>{t('This deletes {list}. Jobs that are running are deleted, too. It cannot be undone.', {list: parts.join(', ')})}</p>
      <p class="quiet">{t('The settings of the topic stay.')}</p>
    </Confirm>
  );
}

export function TopicPage({name}: {name: string}) {
  const live = useStore(topics).get(name);
  useStore(beat);
  const {value: figures, problem, reload} = useLoad(`topic ${name}`, (signal) => get<TopicFigures>(topicPath(name), signal), 2);
  const [isPurging, setPurging] = useState(false);
  const counts = figures?.counts;
  const total = counts ? states.reduce((all, state) => all + counts[state], 0) : 0;
  const died = useMemo(() => figures?.since_start.died ?? 0, [figures]);
  const forget = async () => {
    await send('POST', `${topicPath(name)}/forget`);
    note(t('{topic} is forgotten.', {topic: name}));
    go(link(['topics']));
  };
  return (
    <>
      <Head title={name} back={{to: link(['topics']), name: t('Topics')}} lead={figures?.settings.paused ? <span class="badge warn">{t('paused')}</span> : undefined}>
        {may('push', name) && <a class="button" href={link(['push'], {topic: name})}><Icon name="plus" />{t('Push a job')}</a>}
        {figures && may('admin', name) && (
          <>
            <Act icon={figures.settings.paused ? 'play' : 'pause'} act={async () => (await send('POST', `${topicPath(name)}/${figures.settings.paused ? 'resume' : 'pause'}`), reload())}>
              {figures.settings.paused ? t('Resume') : t('Pause')}
            </Act>
            {total > 0 ? <Button look="danger" onClick={() => setPurging(true)}>{t('Purge…')}</Button> : <Act act={forget}>{t('Forget')}</Act>}
          </>
        )}
      </Head>
      <Problem problem={problem} />
      {figures?.delivery_problem && <Alert tone="bad">{inOwnZone(figures.delivery_problem)}</Alert>}
      {figures && counts && (
        <>
          <div class="tiles">
            {states.map((state) => (
              <a key={state} class={`tile ${state === 'dead' && counts.dead ? 'bad' : ''}`} href={link(['jobs'], {topic: name, state})}>
                <span class="name">{stateName(state)}</span>
                <b>{short(counts[state])}</b>
                <span class="quiet">{state === 'ready' && counts.ready && figures.oldest_ready_at ? t('oldest: {time}', {time: duration(serverNow() - Date.parse(figures.oldest_ready_at))})
                  : state === 'reserved' && counts.reserved && figures.oldest_lease_at ? t('oldest: {time}', {time: duration(Math.max(0, serverNow() - Date.parse(figures.oldest_lease_at)))})
                  : state === 'ready' ? t('{n} consumer waits|{n} consumers wait', {n: figures.waiters}) : state === 'dead' ? t('{n} since the start', {n: number(died)})
                  : state === 'delayed' ? t('{n} pushed', {n: short(figures.since_start.pushed)}) : state === 'reserved' ? t('{n} handed over', {n: short(figures.since_start.popped)}) : t('{n} acked', {n: short(figures.since_start.acked)})}</span>
              </a>
            ))}
            <div class="tile"><span class="name">{t('lateness')}</span><b>{milliseconds(figures.lateness_ms.p50)}</b><span class="quiet">{t('p99 {time}', {time: milliseconds(figures.lateness_ms.p99)})}</span></div>
          </div>
          {may('read', name) && <Future topic={name} />}
          <SettingsForm topic={name} settings={figures.settings} onChanged={reload} />
        </>
      )}
      {isPurging && counts && <Purge topic={name} counts={counts} onClose={() => setPurging(false)} onDone={reload} />}
      {live === undefined && figures && total === 0 && <p class="quiet">{t('This topic has no jobs and no settings of its own.')}</p>}
    </>
  );
}
