// A form that pushes a job, and shows the same request for curl and redis-cli.
import {useState} from 'preact/hooks';
import {ask, base, may, query, Refusal, send, server, topicPath} from './api';
import {localInput, zone} from './format';
import {topics} from './live';
import {go, link, route} from './route';
import {useStore} from './store';
import {t} from './text';
import {Act, Alert, Code, explain, Field, Head, note, Panel, Segments} from './ui';

type When = 'now' | 'delay' | 'at';
const shell = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function Push() {
  const {query: said} = useStore(route);
  const list = useStore(topics);
  const [topic, setTopic] = useState(said.topic ?? '');
  const [id, setId] = useState('');
  const [body, setBody] = useState('{"uid": 1}');
  const [when, setWhen] = useState<When>('delay');
  const [delay, setDelay] = useState('30s');
  const [at, setAt] = useState(localInput(Date.now() + 3_600_000));
  const [group, setGroup] = useState('');
  const [priority, setPriority] = useState('');
  const [attempts, setAttempts] = useState('');
  const [callback, setCallback] = useState('');
  const [conflict, setConflict] = useState('reject');
  const [problem, setProblem] = useState<unknown>();
  let isJson = true;
  try {
    JSON.parse(body);
  } catch {
    isJson = false;
  }
  const moment = when === 'at' && at ? new Date(at).toISOString() : undefined;
  const fields: [string, string | number | undefined][] = [
    ['id', id || undefined], ['delay', when === 'delay' ? delay : undefined], ['at', moment], ['group', group || undefined],
    ['priority', priority ? Number(priority) : undefined], ['attempts', attempts ? Number(attempts) : undefined], ['callback', callback || undefined], ['on_conflict', conflict === 'reject' ? undefined : conflict],
  ];
  const given = fields.filter(([, value]) => value !== undefined);
  // The body goes as it is written: JSON.stringify would change large numbers.
  const json = `{"body": ${body}${given.map(([name, value]) => `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`).join('')}}`;
  const path = `${topicPath(topic || 'order')}/jobs`;
  const withToken = server.value?.tokens;
  const url = new URL(path, base).href;
  const curl = isJson
    ? `curl ${shell(url)}${withToken ? " -H 'Authorization: Bearer TOKEN'" : ''} -d ${shell(json)}`
    : `curl ${shell(url + query(Object.fromEntries(given)))}${withToken ? " -H 'Authorization: Bearer TOKEN'" : ''} -H 'Content-Type: text/plain' -d ${shell(body)}`;
  const [host, port] = (() => {
    const address = server.value?.resp ?? '127.0.0.1:9278';
    const cut = address.lastIndexOf(':');
    return [address.slice(0, cut), address.slice(cut + 1)];
  })();
  const local = /^(127\.|\[?::1|localhost|0\.0\.0\.0|\[?::\]?$)/.test(host);
  const options = [id && `ID ${shell(id)}`, moment && `AT ${moment}`, priority && `PRI ${priority}`, attempts && `ATTEMPTS ${attempts}`, group && `GROUP ${shell(group)}`, callback && `CALLBACK ${shell(callback)}`, conflict !== 'reject' && conflict.toUpperCase()].filter(Boolean);
  const redis = `redis-cli${local ? '' : ` -h ${host}`} -p ${port}${withToken ? ' -a TOKEN' : ''} PUSH ${shell(topic || 'order')} ${when === 'delay' ? shell(delay) : '0'} ${shell(body)}${options.length ? ` ${options.join(' ')}` : ''}`;
  const push = async () => {
    setProblem(undefined);
    try {
      const receipt = isJson ? await send<{id: string}>('POST', path, json)
        : ((await (await ask(path + query(Object.fromEntries(given)), {method: 'POST', body, headers: {'Content-Type': 'text/plain'}})).json()) as {id: string});
      note(t('{id} is stored.', {id: receipt.id}));
      go(link(['topics', topic, 'jobs', receipt.id]));
    } catch (wrong) {
      setProblem(wrong);
    }
  };
  const wrong = (name: string) => (problem instanceof Refusal && problem.field === name ? problem.message : undefined);
  const known = ['topic', 'id', 'delay', 'at', 'body', 'group', 'priority', 'attempts', 'callback'];
  const text = (name: string, label: string, value: string, set: (value: string) => void, more: object = {}) => (
    <Field label={label} error={wrong(name)}>{(key) => <input id={key} value={value} spellcheck={false} autocomplete="off" onInput={(event) => set(event.currentTarget.value)} {...more} />}</Field>
  );
  return (
    <>
      <Head title={t('Push a job')} back={{to: link(['jobs'], {topic}), name: t('Jobs')}} />
      <div class="two push">
        <Panel>
          <form class="form" onSubmit={(event) => event.preventDefault()}>
            <div class="row">
              {text('topic', t('topic'), topic, setTopic, {list: 'push-topics', placeholder: 'order', required: true})}
              <datalist id="push-topics">{[...list.keys()].slice(0, 1000).map((name) => <option key={name} value={name} />)}</datalist>
              {text('id', t('id (generated without one)'), id, setId, {placeholder: 'order:1'})}
            </div>
            <Field label={t('body')} error={wrong('body')} hint={isJson ? t('JSON') : t('This is no JSON; it is stored as a text.')}>
              {(key) => <textarea id={key} rows={7} spellcheck={false} value={body} onInput={(event) => setBody(event.currentTarget.value)} />}
            </Field>
            <div class="row">
              <div class="field">
                <span class="label">{t('due')}</span>
                <Segments label={t('due')} value={when} onChange={setWhen} options={[['now', t('now')], ['delay', t('after a delay')], ['at', t('at a time')]]} />
              </div>
              {when === 'delay' && text('delay', t('delay'), delay, setDelay, {placeholder: '30s, 15m, 3h, 7d'})}
              {when === 'at' && text('at', t('Due at ({zone})', {zone: zone()}), at, setAt, {type: 'datetime-local', step: 1})}
            </div>
            <details>
              <summary>{t('More')}</summary>
              <div class="row">
                {text('group', t('group'), group, setGroup)}
                {text('priority', t('priority'), priority, setPriority, {type: 'number', min: 0, placeholder: '1024'})}
                {text('attempts', t('attempts'), attempts, setAttempts, {type: 'number', min: 0, placeholder: '16'})}
                {text('callback', t('callback'), callback, setCallback, {type: 'url', placeholder: 'https://shop.example/hook'})}
                <Field label={t('if the id is in use')}>{(key) => <select id={key} value={conflict} onChange={(event) => setConflict(event.currentTarget.value)}>{['reject', 'replace', 'keep'].map((each) => <option key={each}>{each}</option>)}</select>}</Field>
              </div>
            </details>
            {problem !== undefined && !(problem instanceof Refusal && problem.field && known.includes(problem.field)) && <Alert tone="bad">{explain(problem)}</Alert>}
            <footer><Act look="main" type="submit" disabled={!topic || !may('push', topic)} act={push}>{t('Push')}</Act>{topic && !may('push', topic) && <span class="quiet">{t('Your token may not push to this topic.')}</span>}</footer>
          </form>
        </Panel>
        <Panel title={t('The same request')}>
          <h3>curl</h3>
          <Code text={curl} />
          <h3>redis-cli</h3>
          <Code text={redis} />
        </Panel>
      </div>
    </>
  );
}
