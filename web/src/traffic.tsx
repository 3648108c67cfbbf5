// Who takes jobs: hosts that are called back, and consumers that pop.
import {get, type Callbacks as Figures, type Consumers as Clients, type Job, topicPath} from './api';
import {duration, milliseconds, number} from './format';
import {beat, topics} from './live';
import {link} from './route';
import {serverNow} from './api';
import {useStore} from './store';
import {t} from './text';
import {Empty, Head, Panel, Problem, Time, useLoad} from './ui';

const breakerNames = {closed: () => t('calls'), open: () => t('not called'), half_open: () => t('trying again')};
const percent = (part: number, all: number) => (all === 0 ? '–' : `${part === 0 ? 100 : Math.min(99.9, Math.floor((1000 * (all - part)) / all) / 10)}%`);

export function Callbacks() {
  const {value, problem} = useLoad('callbacks', (signal) => get<Figures>('v1/callbacks?limit=200', signal), 2);
  return (
    <>
      <Head title={t('Callbacks')} lead={t('Jobs that the server delivers by calling a URL.')} />
      <Problem problem={problem} />
      {value && value.hosts.length === 0 && (
        <Panel><Empty title={t('No host was called yet')} command={["delayq push order 5s '{\"uid\":1}' --callback https://shop.example/hooks/order"]}>{t('Give a job or a topic a callback, and the server calls it when the job is due.')}</Empty></Panel>
      )}
      {value && value.hosts.length > 0 && (
        <>
          <div class="tiles">
            <div class="tile"><span class="name">{t('delivered')}</span><b>{number(value.delivered)}</b><span class="quiet">{t('since the start')}</span></div>
            <div class="tile"><span class="name">{t('failed calls')}</span><b>{number(value.failed)}</b><span class="quiet">{t('tried again, or dead')}</span></div>
            <div class="tile"><span class="name">{t('under way')}</span><b>{number(value.in_flight)}</b><span class="quiet">{t('{n} in line', {n: number(value.waiting)})}</span></div>
          </div>
          <Panel title={t('Hosts')} class="table-panel">
            <div class="scroll" tabIndex={0}>
              <table>
                <thead><tr><th>{t('host')}</th><th>{t('breaker')}</th><th class="count">{t('success')}</th><th class="count">{t('calls')}</th><th class="count hide-small">p50</th><th class="count hide-small">p99</th><th class="count hide-medium">{t('under way')}</th><th class="hide-medium">{t('last call')}</th></tr></thead>
                <tbody>
                  {value.hosts.map((host) => (
                    <tr key={host.host} data-host={host.host}>
                      <td class="name">{host.host}</td>
                      <td><span class={`badge ${host.breaker === 'closed' ? 'good' : host.breaker === 'open' ? 'state-dead' : 'warn'}`}>{breakerNames[host.breaker]()}</span>{host.open_until && <span class="quiet"> {t('again')} <Time at={host.open_until} /></span>}{host.breaker === 'closed' && host.failures_in_a_row > 0 && <span class="quiet"> {t('{n} failed in a row', {n: host.failures_in_a_row})}</span>}</td>
                      <td class={`count ${host.failed * 20 > host.calls ? 'bad' : ''}`}>{percent(host.failed, host.calls)}</td>
                      <td class="count">{number(host.calls)}</td>
                      <td class="count hide-small">{milliseconds(host.latency_ms.p50)}</td>
                      <td class="count hide-small">{milliseconds(host.latency_ms.p99)}</td>
                      <td class="count hide-medium">{number(host.in_flight)}{host.waiting > 0 && ` + ${number(host.waiting)}`}</td>
                      <td class="hide-medium"><Time at={host.last_call_at} /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Panel>
          <Panel title={t('Last failures')} class="table-panel">
            {value.failures.length === 0 ? <Empty title={t('No call has failed')} /> : (
              <div class="scroll" tabIndex={0}>
                <table>
                  <thead><tr><th>{t('when')}</th><th>{t('job')}</th><th>{t('what')}</th><th class="hide-small">{t('host')}</th><th class="count hide-small">{t('attempt')}</th><th class="count hide-medium">{t('took')}</th></tr></thead>
                  <tbody>
                    {value.failures.map((failure, at) => (
                      <tr key={`${failure.at} ${at}`}>
                        <td><Time at={failure.at} /></td>
                        <td class="name"><a href={link(['topics', failure.topic, 'jobs', failure.id])}>{failure.id}</a> <span class="quiet">{failure.topic}</span></td>
                        <td class="what">{failure.status ?? failure.error}{failure.dead && <span class="badge state-dead">{t('no more calls')}</span>}</td>
                        <td class="hide-small">{failure.host}</td>
                        <td class="count hide-small">{failure.attempt}</td>
                        <td class="count hide-medium">{milliseconds(failure.took_ms)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </Panel>
        </>
      )}
    </>
  );
}

const mostTopics = 10;
const mostLeases = 50;
async function leases(signal: AbortSignal) {
  const busy = [...topics.value.values()].filter((topic) => topic.counts.reserved > 0).sort((a, b) => ((a.oldest_lease_at ?? '') < (b.oldest_lease_at ?? '') ? -1 : 1));
  const pages = await Promise.all(busy.slice(0, mostTopics).map((topic) => get<{jobs: Job[]}>(`${topicPath(topic.topic)}/jobs?state=reserved&limit=${mostLeases}`, signal)));
  const jobs = pages.flatMap((page) => page.jobs).sort((a, b) => ((a.handed_over_at ?? '') < (b.handed_over_at ?? '') ? -1 : 1));
  const oldest = busy.map((topic) => topic.oldest_lease_at).find(Boolean);
  return {jobs: jobs.slice(0, 200), oldest, total: busy.reduce((all, topic) => all + topic.counts.reserved, 0)};
}

export function Consumers() {
  useStore(beat);
  const {value, problem} = useLoad('consumers', (signal) => get<Clients>('v1/consumers?limit=500', signal), 2);
  const held = useLoad('leases', leases, 2);
  return (
    <>
      <Head title={t('Consumers')} lead={t('Who is connected, who waits for jobs, and who holds some.')} />
      <Problem problem={problem ?? held.problem} />
      {value && (
        <div class="tiles">
          <div class="tile"><span class="name">{t('connections')}</span><b>{number(value.connections)}</b><span class="quiet">{t('this page included')}</span></div>
          <div class="tile"><span class="name">{t('waiting pops')}</span><b>{number(value.waiting_total)}</b><span class="quiet">{t('woken by the job')}</span></div>
          <div class="tile"><span class="name">{t('leases held')}</span><b>{number(held.stale?.total ?? 0)}</b><span class="quiet">{held.stale?.oldest ? t('oldest: {time}', {time: duration(Math.max(0, serverNow() - Date.parse(held.stale.oldest)))}) : t('reserved jobs')}</span></div>
        </div>
      )}
      {value && (
        <Panel title={t('Waiting pops')} class="table-panel">
          {value.waiting.length === 0 ? <Empty title={t('No consumer waits')} command={['delayq bpop order']}>{t('A consumer that waits is woken by the job. Try it:')}</Empty> : (
            <div class="scroll" tabIndex={0}>
              <table>
                <thead><tr><th>{t('client')}</th><th>{t('topics')}</th><th>{t('since')}</th><th class="hide-small">{t('gives up')}</th><th class="hide-medium">{t('protocol')}</th><th class="hide-medium">{t('token')}</th></tr></thead>
                <tbody>
                  {value.waiting.map((pop) => (
                    <tr key={pop.client}>
                      <td class="client">{pop.client}</td>
                      <td>{pop.topics.map((topic) => <a key={topic} class="chip" href={link(['topics', topic])}>{topic}</a>)}</td>
                      <td><Time at={pop.since} /></td>
                      <td class="hide-small"><Time at={pop.until} /></td>
                      <td class="hide-medium">{pop.protocol}</td>
                      <td class="hide-medium">{pop.token ?? '–'}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Panel>
      )}
      {held.stale && (
        <Panel title={t('Leases held')} class="table-panel">
          {held.stale.jobs.length === 0 ? <Empty title={t('No job is held')}>{t('Reserved jobs show here, with the time that is left of their lease.')}</Empty> : (
            <div class="scroll" tabIndex={0}>
              <table>
                <thead><tr><th>{t('job')}</th><th>{t('topic')}</th><th>{t('held since')}</th><th>{t('lease ends')}</th><th class="count">{t('attempt')}</th><th class="count hide-small">{t('since it was due')}</th></tr></thead>
                <tbody>
                  {held.stale.jobs.map((job) => (
                    <tr key={`${job.topic} ${job.id}`}>
                      <td class="name"><a href={link(['topics', job.topic, 'jobs', job.id])}>{job.id}</a></td>
                      <td>{job.topic}</td>
                      <td>{job.handed_over_at ? <Time at={job.handed_over_at} /> : '–'}</td>
                      <td><Time at={job.lease_until!} /></td>
                      <td class="count">{job.attempts}</td>
                      <td class="count hide-small">{duration(serverNow() - Date.parse(job.due_at))}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Panel>
      )}
    </>
  );
}
