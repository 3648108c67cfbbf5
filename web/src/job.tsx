// One job: all that is known of it, and what can be done with it.
import {useState} from 'preact/hooks';
import {ask, get, jobPath, may, send, serverNow, topicPath, type Headers, type Job, type TopicFigures} from './api';
import {absolute, bytes as sizeOf, localInput, relative, zone} from './format';
import {hex, memberText, pretty} from './json';
import {link} from './route';
import {t} from './text';
import {Act, Alert, Button, Confirm, Copy, Dialog, Empty, Field, Head, inOwnZone, note, Panel, Problem, Segments, StateBadge, Time, useLoad} from './ui';
import {Refusal} from './api';

const mostShown = 256 * 1024;

type Body = {bytes: Uint8Array; json?: string; isText: boolean};
function bodyOf(text: string, job: Job): Body {
  if (job.body_base64 !== undefined) return {bytes: Uint8Array.from(atob(job.body_base64), (char) => char.charCodeAt(0)), isText: false};
  const raw = memberText(text, 'body') ?? 'null';
  const isText = job.content_type !== undefined && typeof job.body === 'string';
  const written = isText ? (job.body as string) : raw;
  let json: string | undefined = isText ? undefined : raw;
  if (isText) {
    try {
      JSON.parse(written);
      json = written;
    } catch {
      // A text that is no JSON.
    }
  }
  return {bytes: new TextEncoder().encode(written), json, isText: true};
}

type View = 'json' | 'text' | 'hex';
export function BodyPanel({text, job}: {text: string; job: Job}) {
  const body = bodyOf(text, job);
  const views: [View, string][] = [...(body.json !== undefined ? [['json', 'JSON'] as [View, string]] : []), ...(body.isText ? [['text', t('Text')] as [View, string]] : []), ['hex', t('Hex')]];
  const [chosen, setChosen] = useState<View>();
  const view = chosen && views.some(([key]) => key === chosen) ? chosen : views[0][0];
  const decoded = () => new TextDecoder().decode(body.bytes.subarray(0, mostShown));
  const shown = view === 'json' ? pretty(body.json!.slice(0, mostShown)) : view === 'text' ? decoded() : hex(body.bytes, mostShown / 16);
  return (
    <Panel title={t('Body')} tools={<><span class="quiet">{sizeOf(body.bytes.length)}{job.content_type && ` · ${job.content_type}`}</span><Segments label={t('Show as')} value={view} options={views} onChange={setChosen} /><Copy text={view === 'hex' ? shown : decoded()} /></>}>
      <pre class="body" tabIndex={0} data-view={view}>{shown}</pre>
      {body.bytes.length > mostShown && <p class="quiet">{t('Only the first part is shown.')}</p>}
    </Panel>
  );
}

function Reschedule({job, onClose, onDone}: {job: Job; onClose: () => void; onDone: () => void}) {
  const [at, setAt] = useState(localInput(Math.max(Date.parse(job.due_at), serverNow() + 60_000)));
  const chosen = new Date(at).getTime();
  const tomorrow = new Date(serverNow() + 86_400_000).setHours(9, 0, 0, 0);
  const quick: [string, number][] = [['+1m', serverNow() + 60_000], ['+10m', serverNow() + 600_000], ['+1h', serverNow() + 3_600_000], ['+1d', serverNow() + 86_400_000], [t('tomorrow, 09:00'), tomorrow]];
  const act = async () => {
    await send('PATCH', jobPath(job.topic, job.id), {at: new Date(chosen).toISOString()});
    note(t('Due {time}.', {time: relative(chosen)}));
    onDone();
    onClose();
  };
  return (
    <Dialog title={t('Move {id} to another time', {id: job.id})} onClose={onClose}>
      <Field label={t('Due at ({zone})', {zone: zone()})} hint={Number.isNaN(chosen) ? undefined : relative(chosen)}>
        {(id) => <input id={id} type="datetime-local" step="1" autofocus value={at} onInput={(event) => setAt(event.currentTarget.value)} />}
      </Field>
      <div class="chips">{quick.map(([name, moment]) => <Button key={name} onClick={() => setAt(localInput(moment))}>{name}</Button>)}</div>
      <footer>
        <Button onClick={onClose}>{t('Close')}</Button>
        <Act look="main" disabled={Number.isNaN(chosen)} act={act}>{t('Move')}</Act>
      </footer>
    </Dialog>
  );
}

export const HeaderLines = ({headers}: {headers: Headers}) => <>{Object.entries(headers).map(([name, said]) => <div key={name}><code>{name}: {said}</code></div>)}</>;

type Step = {name: string; at?: string; note?: string; tone?: string; isNext?: boolean};
function lifeOf(job: Job, attempts: number | undefined): Step[] {
  const steps: Step[] = [{name: t('pushed'), at: job.pushed_at}];
  const isFuture = Date.parse(job.due_at) > serverNow();
  steps.push({name: job.attempts > 0 && isFuture && job.state === 'delayed' ? t('due again') : t('due'), at: job.due_at, isNext: isFuture});
  if (job.attempts > 0) {
    const step = {name: t('attempt {n}', {n: job.attempts}) + (attempts ? ` / ${attempts}` : ''), note: job.outcome, tone: job.state === 'dead' || job.state === 'delayed' ? 'bad' : ''};
    if (job.state === 'delayed') steps.splice(1, 0, step);
    else steps.push(step);
  }
  if (job.state === 'reserved') steps.push({name: job.cancel_requested ? t('the lease ends; it will not be retried') : t('the lease ends'), at: job.lease_until, isNext: true});
  if (job.state === 'done') steps.push({name: t('done'), tone: 'good', note: job.outcome});
  if (job.state === 'dead') steps.push({name: t('dead'), tone: 'bad'});
  if (job.kept_until) steps.push({name: t('kept until'), at: job.kept_until, isNext: true});
  return steps;
}

export function JobPage({topic, id}: {topic: string; id: string}) {
  const {value, problem, reload} = useLoad(`job ${topic} ${id}`, async (signal) => {
    const text = await (await ask(jobPath(topic, id), {signal})).text();
    return {text, job: JSON.parse(text) as Job};
  }, 2);
  const attempts = useLoad(`attempts ${topic}`, (signal) => get<TopicFigures>(topicPath(topic), signal)).value?.settings.attempts as number | undefined;
  const [asks, setAsks] = useState<'move' | 'cancel'>();
  const back = {to: link(['jobs'], {topic, state: value?.job.state}), name: topic};
  if (!value || (problem instanceof Refusal && problem.status === 404)) {
    return (
      <>
        <Head title={id} back={back} />
        {problem instanceof Refusal && problem.status === 404 ? <Panel><Empty title={t('There is no such job')}>{t('It was acked and is not kept any more, it was cancelled, or it never was.')}</Empty></Panel> : <Problem problem={problem} />}
      </>
    );
  }
  const {job} = value;
  const isWaiting = job.state === 'delayed' || job.state === 'ready';
  const cancel = async () => {
    const {result} = await send<{result: string}>('DELETE', jobPath(topic, id));
    note(result === 'cancelled' ? t('{id} is cancelled.', {id}) : result === 'reserved' ? t('{id} is running; it will not be retried.', {id}) : t('{id} was not there any more: {result}.', {id, result}));
    reload();
  };
  const runNow = async () => {
    await send('PATCH', jobPath(topic, id), {delay: 0});
    note(t('{id} is ready now.', {id}));
    reload();
  };
  const redrive = async () => {
    await send('POST', `${topicPath(topic)}/redrive`, {ids: [id]});
    note(t('{id} is ready again, with all its attempts.', {id}));
    reload();
  };
  const facts: [string, preact.ComponentChildren][] = [
    [t('topic'), <a href={link(['topics', topic])}>{topic}</a>],
    [t('due'), <Time at={job.due_at} both />],
    [t('pushed'), <Time at={job.pushed_at} both />],
    [t('attempts'), attempts ? t('{n} of {most}', {n: job.attempts, most: attempts}) : String(job.attempts)],
    [t('priority'), String(job.priority)],
  ];
  if (job.group) facts.push([t('group'), job.group]);
  if (job.callback) facts.push([t('callback'), job.callback]);
  if (job.callback_header_names) facts.push([t('headers of the callback'), job.callback_header_names.join(', ')]);
  if (job.headers) facts.push([t('headers'), <HeaderLines headers={job.headers} />]);
  if (job.handed_over_at) facts.push([t('held since'), <Time at={job.handed_over_at} both />]);
  if (job.lease_until) facts.push([t('lease ends'), <Time at={job.lease_until} both />]);
  if (job.kept_until) facts.push([t('kept until'), <Time at={job.kept_until} both />]);
  return (
    <>
      <Head title={id} back={back} lead={<StateBadge state={job.state} />}>
        {may('push', topic) && (isWaiting || job.state === 'dead') && (
          <>
            {job.state !== 'ready' && job.state !== 'dead' && <Act look="main" icon="play" act={runNow}>{t('Run now')}</Act>}
            <Button onClick={() => setAsks('move')}>{t('Reschedule…')}</Button>
          </>
        )}
        {job.state === 'dead' && may('admin', topic) && <Act look="main" icon="play" act={redrive}>{t('Redrive')}</Act>}
        {may('push', topic) && (isWaiting || job.state === 'reserved') && <Button look="danger" onClick={() => setAsks('cancel')}>{t('Cancel…')}</Button>}
      </Head>
      {job.delivery_problem && <Alert tone="warn">{inOwnZone(job.delivery_problem)}</Alert>}
      {job.outcome && job.state !== 'done' && <Alert tone={job.state === 'dead' ? 'bad' : 'warn'}><span class="lines">{job.outcome}</span></Alert>}
      <div class="two job">
        <BodyPanel text={value.text} job={job} />
        <div>
          <Panel title={t('Its life')}>
            <ol class="life">
              {lifeOf(job, attempts).map((step) => (
                <li key={step.name} class={`${step.tone ?? ''} ${step.isNext ? 'next' : ''}`}>
                  <b>{step.name}</b>
                  {step.at && <span><Time at={step.at} /><span class="quiet"> {absolute(step.at)}</span></span>}
                  {step.note && <span class="quiet clipped" title={step.note}>{step.note}</span>}
                </li>
              ))}
            </ol>
          </Panel>
          <Panel title={t('Facts')}>
            <dl>{facts.map(([name, said]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{said}</dd>])}</dl>
          </Panel>
        </div>
      </div>
      {asks === 'move' && <Reschedule job={job} onClose={() => setAsks(undefined)} onDone={reload} />}
      {asks === 'cancel' && (
        <Confirm title={t('Cancel {id}?', {id})} action={t('Cancel the job')} act={cancel} onClose={() => setAsks(undefined)}>
          <p>{job.state === 'reserved' ? t('It is running now. It is not interrupted, but it will not be retried.') : t('It is removed and will never be handed over.')}</p>
        </Confirm>
      )}
    </>
  );
}
