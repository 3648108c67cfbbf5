// Finding jobs: by topic and state, id or its beginning, due time, error.
import {useEffect, useState} from 'preact/hooks';
import {get, jobPath, may, query, send, states, topicPath, type Job, type State} from './api';
import {number, short} from './format';
import {beat, topics, totals} from './live';
import {become, go, link, route} from './route';
import {useStore} from './store';
import {t} from './text';
import {Act, Button, Confirm, Empty, Head, Icon, note, Panel, Problem, stateName, Time, useLoad} from './ui';

const pageSize = 50;
/** How long is looked for one page of matches: the server looks through some thousand jobs for each answer. */
const longestLook = 4_000;

/** `looks`: how many answers of the server it took. */
type Page = {jobs: Job[]; cursor: string; looks: number};
type Filter = {topic: string; state: State; prefix: string; error: string; after: string; before: string};

async function find(filter: Filter, from: string, signal: AbortSignal): Promise<Page> {
  const moment = (local: string) => (Number.isNaN(Date.parse(local)) ? '' : new Date(local).toISOString());
  const page: Page = {jobs: [], cursor: from, looks: 0};
  for (const end = performance.now() + longestLook; ; ) {
    const next = await get<{jobs: Job[]; cursor: string}>(`${topicPath(filter.topic)}/jobs${query({
      state: filter.state, prefix: filter.prefix, error: filter.error, due_after: moment(filter.after), due_before: moment(filter.before), limit: pageSize - page.jobs.length, cursor: page.cursor,
    })}`, signal);
    ++page.looks;
    page.jobs.push(...next.jobs);
    page.cursor = next.cursor;
    if (!next.cursor || page.jobs.length >= pageSize || performance.now() > end) return page;
  }
}

function Search() {
  const [id, setId] = useState('');
  const open = async (event: Event) => {
    event.preventDefault();
    if (!id.trim()) return;
    const {value} = await get<Job>(`v1/jobs/${encodeURIComponent(id.trim())}`).then((value) => ({value}), (problem) => (note(problem.status === 404 ? t('No topic has a job with the id {id}.', {id}) : problem.message, true), {value: undefined}));
    if (value) go(link(['topics', value.topic, 'jobs', value.id]));
  };
  return (
    <form class="search" onSubmit={open}>
      <Icon name="search" />
      <input type="search" aria-label={t('Find a job by its id, in all topics')} placeholder={t('Find a job by its id, in all topics')} value={id} onInput={(event) => setId(event.currentTarget.value)} />
      <Button type="submit">{t('Find')}</Button>
    </form>
  );
}

function ChooseTopic({state}: {state?: State}) {
  const list = useStore(topics);
  useStore(beat);
  const [filter, setFilter] = useState('');
  const all = [...list.values()].filter((topic) => !state || topic.counts[state] > 0);
  const rows = all.filter((topic) => topic.topic.includes(filter)).sort((a, b) => (state ? b.counts[state] - a.counts[state] : a.topic < b.topic ? -1 : 1)).slice(0, 100);
  return (
    <Panel title={state ? t('Topics with {state} jobs', {state: stateName(state)}) : t('Choose a topic')} tools={all.length > 12 && (
      <label class="search">
        <Icon name="search" />
        <input type="search" aria-label={t('Find a topic')} placeholder={t('Find a topic')} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      </label>
    )}>
      {rows.length === 0 && filter ? <Empty title={t('No topic like this')}><a href={link(['jobs'], {topic: filter, state})}>{t('Look at {topic} all the same', {topic: filter})}</a></Empty> : rows.length === 0 ? (
        <Empty title={state ? t('No {state} jobs', {state: stateName(state)}) : t('No topics yet')} command={state && (totals.value?.jobs ?? 0) > 0 ? undefined : ["delayq push order 30s '{\"uid\":1}'"]} />
      ) : (
        <ul class="choices">
          {rows.map((topic) => (
            <li key={topic.topic}>
              <a href={link(['jobs'], {topic: topic.topic, state: state ?? (states.find((each) => topic.counts[each] > 0) ?? 'ready')})}>
                <b>{topic.topic}</b>
                <span class="quiet">{state ? number(topic.counts[state]) : states.filter((each) => topic.counts[each]).map((each) => `${short(topic.counts[each])} ${stateName(each)}`).join(' · ')}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function DeadTools({filter, jobs, selected, onDone}: {filter: Filter; jobs: Job[]; selected: Set<string>; onDone: () => void}) {
  const [asks, setAsks] = useState<'all' | 'error'>();
  const redrive = async (body: object) => {
    const {jobs} = await send<{jobs: number}>('POST', `${topicPath(filter.topic)}/redrive`, body);
    note(t('{n} job is ready again.|{n} jobs are ready again.', {n: jobs}));
    onDone();
  };
  const dead = topics.value.get(filter.topic)?.counts.dead ?? jobs.length;
  if (!may('admin', filter.topic)) return null;
  return (
    <>
      {selected.size > 0 && <Act look="main" act={() => redrive({ids: [...selected]})}>{t('Redrive {n} selected', {n: selected.size})}</Act>}
      {filter.error && jobs.length > 0 && <Button onClick={() => setAsks('error')}>{t('Redrive all with this error…')}</Button>}
      {!filter.error && jobs.length > 0 && <Button onClick={() => setAsks('all')}>{t('Redrive all…')}</Button>}
      {asks && (
        <Confirm title={asks === 'all' ? t('Redrive all dead jobs of {topic}?', {topic: filter.topic}) : t('Redrive all dead jobs with this error?')}
          action={t('Redrive')} onClose={() => setAsks(undefined)} act={() => redrive(asks === 'all' ? {} : {error: filter.error})}>
          <p>{asks === 'all' ? t('{n} dead job becomes ready at once, with all its attempts.|{n} dead jobs become ready at once, with all their attempts.', {n: dead})
            : t('All dead jobs of {topic} whose error contains “{error}” become ready at once, with all their attempts.', {topic: filter.topic, error: filter.error})}</p>
        </Confirm>
      )}
    </>
  );
}

/** What many jobs with this error share: its first line, of a Python traceback the last one. */
function commonError(text: string): string {
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean);
  return ((lines[0]?.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? '').slice(0, 120);
}

export function Jobs() {
  const {query: said} = useStore(route);
  const list = useStore(topics);
  useStore(beat);
  const filter: Filter = {
    topic: said.topic ?? '', state: states.find((state) => state === said.state) ?? 'delayed',
    prefix: said.prefix ?? '', error: said.error ?? '', after: said.after ?? '', before: said.before ?? '',
  };
  const key = JSON.stringify(filter);
  const [trail, setTrail] = useState<string[]>(['']);
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [isLong, setLong] = useState(false);
  const [isCancelling, setCancelling] = useState(false);
  const [isWindow, setWindow] = useState(Boolean(filter.after || filter.before));
  useEffect(() => (setTrail(['']), setSelected(new Set())), [key]);
  const {stale, value, problem, reload} = useLoad<Page>(`${key} ${trail.at(-1)}`, (signal) => (filter.topic ? find(filter, trail.at(-1)!, signal) : Promise.resolve({jobs: [], cursor: '', looks: 0})), trail.length === 1 && !isLong ? 3 : 0);
  // What takes the server many looks is not asked again every three seconds.
  useEffect(() => setLong((value?.looks ?? 1) > 2), [value]);
  const page = value ?? (stale?.jobs[0]?.topic === filter.topic && stale.jobs[0]?.state === filter.state ? stale : undefined);
  const change = (part: Partial<Filter>) => become(link(['jobs'], {...said, ...part}));
  const counts = list.get(filter.topic)?.counts;
  const canSelect = (filter.state === 'dead' && may('admin', filter.topic)) || ((filter.state === 'delayed' || filter.state === 'ready') && may('push', filter.topic));
  const jobs = page?.jobs ?? [];
  const toggle = (id: string) => setSelected((old) => {
    const next = new Set(old);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const done = () => (setSelected(new Set()), reload());
  const cancel = async () => {
    const results = await Promise.all([...selected].map((id) => send<{result: string}>('DELETE', jobPath(filter.topic, id))));
    note(t('{n} job is cancelled.|{n} jobs are cancelled.', {n: results.filter((each) => each.result === 'cancelled').length}));
    done();
  };
  const hasFilter = filter.prefix || filter.error || filter.after || filter.before;
  return (
    <>
      <Head title={t('Jobs')}>
        <Search />
        {may('push') && <a class="button" href={link(['push'], {topic: filter.topic})}><Icon name="plus" />{t('Push a job')}</a>}
      </Head>
      {!filter.topic ? <ChooseTopic state={said.state ? filter.state : undefined} /> : (
        <Panel class="table-panel">
          <div class="filters">
            <label class="pick">
              <span>{t('topic')}</span>
              <input list="topics" value={filter.topic} spellcheck={false} onChange={(event) => change({topic: event.currentTarget.value})} />
              <datalist id="topics">{[...list.keys()].slice(0, 1000).map((name) => <option key={name} value={name} />)}</datalist>
            </label>
            <div class="segments" role="group" aria-label={t('State')}>
              {states.map((state) => (
                <button key={state} type="button" aria-pressed={state === filter.state} onClick={() => change({state})}>
                  {stateName(state)} {counts && <span class="quiet">{short(counts[state])}</span>}
                </button>
              ))}
            </div>
            <input type="search" aria-label={t('The id begins with')} placeholder={t('The id begins with')} value={filter.prefix} onInput={(event) => change({prefix: event.currentTarget.value})} />
            {(filter.state === 'dead' || filter.state === 'done' || filter.error) && (
              <input type="search" aria-label={t('The error contains')} placeholder={filter.state === 'done' ? t('The outcome contains') : t('The error contains')} value={filter.error} onInput={(event) => change({error: event.currentTarget.value})} />
            )}
            {!isWindow ? <Button look="quiet" onClick={() => setWindow(true)}>{t('Due between…')}</Button> : (
              <span class="window">
                <input type="datetime-local" step="1" aria-label={t('Due after')} value={filter.after} onInput={(event) => change({after: event.currentTarget.value})} />
                –
                <input type="datetime-local" step="1" aria-label={t('Due before')} value={filter.before} onInput={(event) => change({before: event.currentTarget.value})} />
                <Button look="quiet" icon="close" hint={t('Any time')} onClick={() => (setWindow(false), change({after: '', before: ''}))} />
              </span>
            )}
            {!value && !problem && <span class="quiet late" role="status">{t('Looking…')}</span>}
            <span class="tools">
              {filter.state === 'dead' && <DeadTools filter={filter} jobs={jobs} selected={selected} onDone={done} />}
              {filter.state !== 'dead' && selected.size > 0 && <Button look="danger" onClick={() => setCancelling(true)}>{t('Cancel {n} selected…', {n: selected.size})}</Button>}
              {isCancelling && (
                <Confirm title={t('Cancel {n} job?|Cancel {n} jobs?', {n: selected.size})} action={t('Cancel {n} job|Cancel {n} jobs', {n: selected.size})} act={cancel} onClose={() => setCancelling(false)}>
                  <p>{t('They are removed and will never be handed over.')}</p>
                </Confirm>
              )}
            </span>
          </div>
          <Problem problem={problem} />
          {page && jobs.length === 0 && (
            <Empty title={page.cursor ? t('Nothing found so far') : hasFilter ? t('No job is like this') : t('No {state} jobs', {state: stateName(filter.state)})}>
              {filter.prefix && <a href={link(['topics', filter.topic, 'jobs', filter.prefix])}>{t('The job whose id is exactly this')}</a>}
              {page.cursor ? <Button onClick={() => setTrail([...trail, page.cursor])}>{t('Look further')}</Button>
                : !hasFilter && filter.state === 'delayed' && may('push', filter.topic) ? <a href={link(['push'], {topic: filter.topic})}>{t('Push a job')}</a> : null}
            </Empty>
          )}
          {jobs.length > 0 && (
            <div class="scroll" tabIndex={0}>
              <table class="jobs">
                <thead>
                  <tr>
                    {canSelect && <th class="check"><input type="checkbox" aria-label={t('Select all on this page')} checked={jobs.every((job) => selected.has(job.id))} onChange={(event) => setSelected(event.currentTarget.checked ? new Set(jobs.map((job) => job.id)) : new Set())} /></th>}
                    <th>{t('id')}</th>
                    <th>{filter.state === 'reserved' ? t('lease ends') : t('due')}</th>
                    <th class="count hide-small">{t('attempts')}</th>
                    <th class="hide-small">{t('pushed')}</th>
                    <th class={filter.state === 'dead' || filter.state === 'done' ? '' : 'hide-small'}>{filter.state === 'dead' ? t('error') : filter.state === 'done' ? t('outcome') : t('last error')}</th>
                  </tr>
                </thead>
                <tbody>
                  {jobs.map((job) => (
                    <tr key={job.id} data-job={job.id}>
                      {canSelect && <td class="check"><input type="checkbox" aria-label={t('Select {id}', {id: job.id})} checked={selected.has(job.id)} onChange={() => toggle(job.id)} /></td>}
                      <td class="name"><a href={link(['topics', job.topic, 'jobs', job.id])}>{job.id}</a>{job.group && <span class="quiet"> {job.group}</span>}{job.cancel_requested && <span class="badge warn">{t('will not be retried')}</span>}</td>
                      <td><Time at={job.lease_until ?? job.due_at} /></td>
                      <td class="count hide-small">{job.attempts}</td>
                      <td class="hide-small"><Time at={job.pushed_at} /></td>
                      <td class={`outcome ${filter.state === 'dead' || filter.state === 'done' ? '' : 'hide-small'}`}>
                        {job.outcome && (filter.state === 'dead' ? <button type="button" class="link" title={t('Only jobs with this error')} onClick={() => change({error: commonError(job.outcome!)})}>{job.outcome}</button> : job.outcome)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {(trail.length > 1 || page?.cursor) && (
            <footer class="pages">
              <Button disabled={trail.length === 1} onClick={() => setTrail(trail.slice(0, -1))}>{t('Previous page')}</Button>
              <span class="quiet">{t('Page {n}', {n: trail.length})}</span>
              <Button disabled={!value?.cursor} onClick={() => value && setTrail([...trail, value.cursor])}>{t('Next page')}</Button>
            </footer>
          )}
        </Panel>
      )}
    </>
  );
}
