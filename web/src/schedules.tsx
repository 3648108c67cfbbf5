// Schedules: rules that make a job again and again.
import {useState} from 'preact/hooks';
import {ask, get, may, query, Refusal, schedulePath, send, type Schedule} from './api';
import {absolute, number, relative, zone as ownZone} from './format';
import {HeaderLines} from './job';
import {memberText, pretty} from './json';
import {topics} from './live';
import {become, go, link, route} from './route';
import {useStore} from './store';
import {t} from './text';
import {Act, Alert, Button, Code, Confirm, Empty, explain, Field, Head, Icon, inOwnZone, note, Panel, Problem, Segments, Time, useLoad} from './ui';

const mayChange = (schedule: {topic: string}) => may('schedule', schedule.topic);
const rule = (schedule: Schedule) => schedule.cron ?? t('every {time}', {time: schedule.every ?? ''});
const stateNames = {active: () => t('active'), paused: () => t('paused'), ended: () => t('ended')};

function Actions({schedule, onDone, inHead}: {schedule: Schedule; onDone: () => void; inHead?: boolean}) {
  if (!mayChange(schedule)) return null;
  const path = schedulePath(schedule.name);
  const run = async () => {
    const {id} = await send<{id: string}>('POST', `${path}/run`);
    note(t('{id} is made.', {id}));
    onDone();
  };
  const isPaused = schedule.state === 'paused';
  return (
    <>
      {schedule.state !== 'ended' && (
        <Act look={inHead ? undefined : 'quiet'} icon={isPaused ? 'play' : 'pause'} hint={isPaused ? t('Resume {topic}', {topic: schedule.name}) : t('Pause {topic}', {topic: schedule.name})} act={async () => (await send('POST', `${path}/${isPaused ? 'resume' : 'pause'}`), onDone())}>
          {inHead && (isPaused ? t('Resume') : t('Pause'))}
        </Act>
      )}
      <Act look={inHead ? undefined : 'quiet'} class={inHead ? '' : 'hide-small'} act={run}>{t('Run now')}</Act>
    </>
  );
}

export function Schedules() {
  const [trail, setTrail] = useState<string[]>(['']);
  const {query: said} = useStore(route);
  const filter = said.filter ?? '';
  const {value, problem, reload} = useLoad(`schedules ${trail.at(-1)}`, (signal) => get<{schedules: Schedule[]; cursor: string}>(`v1/schedules${query({limit: 200, cursor: trail.at(-1)})}`, signal), 3);
  const rows = (value?.schedules ?? []).filter((each) => each.name.includes(filter) || each.topic?.includes(filter));
  return (
    <>
      <Head title={t('Schedules')}>{may('schedule') && <a class="button main" href={link(['schedule', 'new'])}><Icon name="plus" />{t('New schedule')}</a>}</Head>
      <Problem problem={problem} />
      {value && (
        <Panel class="table-panel" tools={value.schedules.length > 0 && (
          <label class="search"><Icon name="search" /><input type="search" aria-label={t('Find a schedule')} placeholder={t('Find a schedule')} value={filter} onInput={(event) => become(link(['schedules'], {filter: event.currentTarget.value}))} /></label>
        )}>
          {rows.length === 0 ? (
            <Empty title={filter ? t('No schedule like this') : t('No schedules yet')} command={filter ? undefined : ["delayq schedule set nightly --cron '0 2 * * *' --topic report --body '{\"kind\":\"daily\"}'"]}>
              {!filter && t('A schedule makes a job again and again, by a cron rule or at an interval.')}
            </Empty>
          ) : (
            <div class="scroll" tabIndex={0}>
              <table>
                <thead><tr><th>{t('name')}</th><th>{t('rule')}</th><th>{t('next')}</th><th class="hide-small">{t('topic')}</th><th class="count hide-small">{t('made')}</th><th class="count hide-medium">{t('skipped')}</th><th class="count hide-medium">{t('missed')}</th><th><span class="hidden">{t('Actions')}</span></th></tr></thead>
                <tbody>
                  {rows.map((each) => (
                    <tr key={each.name} data-schedule={each.name}>
                      <td class="name"><a href={link(['schedules', each.name])}>{each.name}</a>{each.state && each.state !== 'active' && <span class="badge warn">{stateNames[each.state]()}</span>}{each.problem && <span class="badge state-dead" title={each.problem}>{t('problem')}</span>}</td>
                      <td>{each.state && <><code>{rule(each)}</code> {each.cron && <span class="quiet hide-small">{each.zone}</span>}</>}</td>
                      <td>{each.next_at ? <Time at={each.next_at} /> : '–'}</td>
                      <td class="hide-small">{each.topic && <a href={link(['topics', each.topic])}>{each.topic}</a>}</td>
                      <td class="count hide-small">{each.occurrences && number(each.occurrences.made)}</td>
                      <td class="count hide-medium">{each.occurrences && number(each.occurrences.skipped)}</td>
                      <td class="count hide-medium">{each.occurrences && number(each.occurrences.missed)}</td>
                      <td class="actions">{each.state && <Actions schedule={each} onDone={reload} />}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {(trail.length > 1 || value.cursor) && (
            <footer class="pages">
              <Button disabled={trail.length === 1} onClick={() => setTrail(trail.slice(0, -1))}>{t('Previous page')}</Button>
              <span class="quiet">{t('Page {n}', {n: trail.length})}</span>
              <Button disabled={!value.cursor} onClick={() => setTrail([...trail, value.cursor])}>{t('Next page')}</Button>
            </footer>
          )}
        </Panel>
      )}
    </>
  );
}

type Preview = {occurrences: {at: string; local: string}[]};
function NextOnes({values, count = 5}: {values: {cron?: string; every?: string; zone?: string; start?: string; from?: string}; count?: number}) {
  const asked = query({...values, count});
  const {value, problem} = useLoad(`preview ${asked}`, (signal) => (values.cron || values.every ? get<Preview>(`v1/schedules/preview${asked}`, signal) : Promise.resolve({occurrences: []})));
  if (problem) return <Alert>{explain(problem)}</Alert>;
  if (!value) return null;
  return (
    <ol class="next-ones" data-preview>
      {value.occurrences.map((each) => (
        <li key={each.at}><time dateTime={each.at}>{absolute(each.at)}</time><span class="quiet"> {relative(each.at)}{values.zone && values.zone !== ownZone() && ` · ${each.local.slice(11, 19)} ${values.zone}`}</span></li>
      ))}
      {value.occurrences.length === 0 && (values.cron || values.every) && <li class="quiet">{t('It never occurs.')}</li>}
    </ol>
  );
}

const zones = (): string[] => (Intl as unknown as {supportedValuesOf?: (name: string) => string[]}).supportedValuesOf?.('timeZone') ?? [];

/** What a change of a schedule keeps, though the form does not show it. */
const carried = ['start', 'end', 'runs', 'jitter', 'group', 'priority', 'attempts', 'backoff', 'lease', 'callback', 'callback_method', 'callback_format', 'headers'];

function Form({old, oldBody}: {old?: Schedule; oldBody?: string}) {
  const list = useStore(topics);
  const [name, setName] = useState(old?.name ?? '');
  const [topic, setTopic] = useState(old?.topic ?? '');
  const [kind, setKind] = useState<'cron' | 'every'>(old?.every ? 'every' : 'cron');
  const [cron, setCron] = useState(old?.cron ?? '0 9 * * 1-5');
  const [zone, setZone] = useState(old?.zone ?? ownZone() ?? 'UTC');
  const [every, setEvery] = useState(old?.every ?? '1h');
  const [overlap, setOverlap] = useState(old?.overlap ?? 'allow');
  const [missed, setMissed] = useState(old?.missed ?? 'one');
  const [body, setBody] = useState(oldBody ?? '{"kind": "daily"}');
  const [problem, setProblem] = useState<unknown>();
  const save = async () => {
    setProblem(undefined);
    const fields: Record<string, unknown> = {topic, overlap, missed};
    if (kind === 'cron') Object.assign(fields, {cron, zone});
    else fields.every = every;
    for (const each of carried) if (old?.[each] !== undefined) fields[each] = old[each];
    try {
      await send('PUT', schedulePath(name), `{"body": ${body}, ${JSON.stringify(fields).slice(1)}`);
      note(old ? t('{name} is changed.', {name}) : t('{name} is set.', {name}));
      go(link(['schedules', name]));
    } catch (wrong) {
      setProblem(wrong);
    }
  };
  let isJson = true;
  try {
    JSON.parse(body);
  } catch {
    isJson = false;
  }
  const wrong = (field: string) => (problem instanceof Refusal && problem.field === field ? problem.message : undefined);
  const shown = ['cron', 'zone', 'every', 'topic', 'body', 'name'];
  return (
    <div class="two push">
      <Panel>
        <form class="form" onSubmit={(event) => event.preventDefault()}>
          <div class="row">
            <Field label={t('name')} error={wrong('name')}>{(id) => <input id={id} value={name} disabled={Boolean(old)} spellcheck={false} placeholder="nightly-report" onInput={(event) => setName(event.currentTarget.value)} />}</Field>
            <Field label={t('topic')} error={wrong('topic')}>{(id) => <input id={id} list="schedule-topics" value={topic} spellcheck={false} placeholder="report" onInput={(event) => setTopic(event.currentTarget.value)} />}</Field>
            <datalist id="schedule-topics">{[...list.keys()].slice(0, 1000).map((each) => <option key={each} value={each} />)}</datalist>
          </div>
          <div class="row">
            <div class="field"><span class="label">{t('rule')}</span><Segments label={t('rule')} value={kind} onChange={setKind} options={[['cron', 'cron'], ['every', t('interval')]]} /></div>
            {kind === 'cron' ? (
              <>
                <Field label="cron" error={wrong('cron')} hint={t('minute hour day month weekday')}>{(id) => <input id={id} class="mono" value={cron} spellcheck={false} onInput={(event) => setCron(event.currentTarget.value)} />}</Field>
                <Field label={t('time zone')} error={wrong('zone')}>{(id) => <><input id={id} list="zones" value={zone} spellcheck={false} onInput={(event) => setZone(event.currentTarget.value)} /><datalist id="zones">{zones().map((each) => <option key={each} value={each} />)}</datalist></>}</Field>
              </>
            ) : <Field label={t('every')} error={wrong('every')} hint="30s, 15m, 3h, 7d">{(id) => <input id={id} value={every} spellcheck={false} onInput={(event) => setEvery(event.currentTarget.value)} />}</Field>}
          </div>
          <div class="row">
            <Field label={t('if the job before is still there')}>{(id) => <select id={id} value={overlap} onChange={(event) => setOverlap(event.currentTarget.value)}><option value="allow">{t('make the next all the same')}</option><option value="skip">{t('skip')}</option><option value="replace">{t('replace it')}</option></select>}</Field>
            <Field label={t('occurrences that were missed')}>{(id) => <select id={id} value={missed} onChange={(event) => setMissed(event.currentTarget.value)}><option value="one">{t('make the last one')}</option><option value="skip">{t('make none')}</option><option value="all">{t('make all')}</option></select>}</Field>
          </div>
          <Field label={t('body')} error={wrong('body') ?? (isJson ? undefined : t('This is no JSON.'))}>{(id) => <textarea id={id} rows={5} spellcheck={false} value={body} onInput={(event) => setBody(event.currentTarget.value)} />}</Field>
          {problem !== undefined && !(problem instanceof Refusal && problem.field && shown.includes(problem.field)) && <Alert tone="bad">{explain(problem)}</Alert>}
          <footer><Act look="main" disabled={!name || !topic || !isJson} act={save}>{old ? t('Save') : t('Set the schedule')}</Act></footer>
        </form>
      </Panel>
      <Panel title={t('The next occurrences')}>
        <NextOnes values={kind === 'cron' ? {cron, zone} : {every}} />
      </Panel>
    </div>
  );
}

export function NewSchedule() {
  return (
    <>
      <Head title={t('New schedule')} back={{to: link(['schedules']), name: t('Schedules')}} />
      <Form />
    </>
  );
}

export function SchedulePage({name}: {name: string}) {
  const {query: said} = useStore(route);
  const {value, problem, reload} = useLoad(`schedule ${name}`, async (signal) => {
    const text = await (await ask(schedulePath(name), {signal})).text();
    return {schedule: JSON.parse(text) as Schedule, body: memberText(text, 'body')};
  }, 2);
  const [asks, setAsks] = useState(false);
  const back = {to: link(['schedules']), name: t('Schedules')};
  if (!value || problem) {
    return (
      <>
        <Head title={name} back={back} />
        {problem instanceof Refusal && problem.status === 404 ? <Panel><Empty title={t('There is no such schedule')} /></Panel> : <Problem problem={problem} />}
      </>
    );
  }
  const {schedule, body} = value;
  if (said.edit) {
    return (
      <>
        <Head title={t('Change {name}', {name})} back={{to: link(['schedules', name]), name}} />
        <Form old={schedule} oldBody={body ? pretty(body) : undefined} />
      </>
    );
  }
  const remove = async () => {
    await send('DELETE', schedulePath(name));
    note(t('{name} is removed.', {name}));
    go(link(['schedules']));
  };
  const facts: [string, preact.ComponentChildren][] = [
    [t('rule'), <><code>{rule(schedule)}</code> {schedule.cron && <span class="quiet">{schedule.zone}</span>}</>],
    [t('topic'), <a href={link(['topics', schedule.topic])}>{schedule.topic}</a>],
    [t('made'), number(schedule.occurrences.made) + (schedule.runs ? ` / ${number(schedule.runs)}` : '')],
    [t('skipped'), number(schedule.occurrences.skipped)],
    [t('missed'), number(schedule.occurrences.missed)],
    [t('created'), <Time at={schedule.created_at} both />],
    [t('overlap'), schedule.overlap],
    [t('missed ones'), schedule.missed],
  ];
  if (schedule.previous) facts.push([t('last job'), <a href={link(['topics', schedule.previous.topic, 'jobs', schedule.previous.id])}>{schedule.previous.id}</a>]);
  for (const each of carried) if (schedule[each] !== undefined && each !== 'headers') facts.push([each, String(schedule[each])]);
  if (schedule.headers) facts.push([t('headers'), <HeaderLines headers={schedule.headers} />]);
  if (schedule.callback_header_names) facts.push([t('headers of the callback'), schedule.callback_header_names.join(', ')]);
  // A change sets the whole schedule anew, and the form has neither of these.
  const cannotChange = schedule.callback_header_names ? t('It has headers of a callback, which are never shown. Change it with the command line or over HTTP.')
    : schedule.body_base64 !== undefined || schedule.content_type !== undefined ? t('Its body is no JSON. Change it with the command line or over HTTP.') : undefined;
  return (
    <>
      <Head title={name} back={back} lead={schedule.state !== 'active' ? <span class="badge warn">{stateNames[schedule.state]()}</span> : <span class="badge good">{t('active')}</span>}>
        {mayChange(schedule) && (
          <>
            <Actions schedule={schedule} onDone={reload} inHead />
            {!cannotChange && <a class="button" href={link(['schedules', name], {edit: '1'})}>{t('Change…')}</a>}
            <Button look="danger" onClick={() => setAsks(true)}>{t('Remove…')}</Button>
          </>
        )}
      </Head>
      {schedule.problem && <Alert tone="bad">{inOwnZone(schedule.problem)}</Alert>}
      {schedule.from_configuration && <Alert tone="info">{t('It comes from the configuration of the server, and is set again when that is read.')}</Alert>}
      {cannotChange && mayChange(schedule) && <p class="quiet">{cannotChange}</p>}
      <div class="two push">
        <div>
          <Panel title={t('The next occurrences')}>
            {schedule.state === 'active' && schedule.cron ? <NextOnes values={{cron: schedule.cron, zone: schedule.zone, start: schedule.start}} />
              : schedule.state === 'active' && schedule.every && schedule.next_at ? <NextOnes values={{every: schedule.every, start: schedule.next_at}} />
              : schedule.next_at ? <ol class="next-ones" data-preview><li><Time at={schedule.next_at} both /></li></ol> : <p class="quiet">{t('None.')}</p>}
          </Panel>
          <Panel title={t('The body of its jobs')}><Code text={body ? pretty(body) : schedule.body_base64 ?? ''} /></Panel>
        </div>
        <Panel title={t('Facts')}><dl>{facts.map(([key, said]) => [<dt key={key}>{key}</dt>, <dd key={`${key} is`}>{said}</dd>])}</dl></Panel>
      </div>
      {asks && <Confirm title={t('Remove {name}?', {name})} action={t('Remove the schedule')} act={remove} onClose={() => setAsks(false)}><p>{t('It makes no further jobs. Jobs that it has made stay.')}</p></Confirm>}
    </>
  );
}
