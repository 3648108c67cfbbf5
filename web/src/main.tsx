// The page: its frame, its views, signing in.
import {render, type ComponentChildren} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {loadServer, needsToken, Refusal, server, signIn, signOut, token, type ServerInfo} from './api';
import {JobPage} from './job';
import {Jobs} from './jobs';
import {connection, follow, totals} from './live';
import {Overview} from './overview';
import {Push} from './push';
import {link, onArrival, route} from './route';
import {NewSchedule, SchedulePage, Schedules} from './schedules';
import {useStore} from './store';
import {language, t, type Phrase} from './text';
import {chosenTheme} from './theme';
import {TopicPage, Topics} from './topics';
import {Callbacks, Consumers} from './traffic';
import {Alert, Button, Empty, explain, Field, Head, Icon, Notes, Panel, type IconName} from './ui';
import './style.css';

const views: {path: string; name: Phrase; icon: IconName; also?: string[]}[] = [
  {path: '', name: 'Overview', icon: 'overview'},
  {path: 'topics', name: 'Topics', icon: 'topics'},
  {path: 'jobs', name: 'Jobs', icon: 'jobs', also: ['push']},
  {path: 'schedules', name: 'Schedules', icon: 'schedules', also: ['schedule']},
  {path: 'callbacks', name: 'Callbacks', icon: 'callbacks'},
  {path: 'consumers', name: 'Consumers', icon: 'consumers'},
];

function View() {
  const {path: [first = '', second, third, fourth]} = useStore(route);
  if (first === '') return <Overview />;
  if (first === 'topics' && third === 'jobs' && fourth !== undefined) return <JobPage key={`${second} ${fourth}`} topic={second} id={fourth} />;
  if (first === 'topics') return second ? <TopicPage key={second} name={second} /> : <Topics />;
  if (first === 'jobs') return <Jobs />;
  if (first === 'push') return <Push />;
  if (first === 'schedule') return <NewSchedule />;
  if (first === 'schedules') return second ? <SchedulePage key={second} name={second} /> : <Schedules />;
  if (first === 'callbacks') return <Callbacks />;
  if (first === 'consumers') return <Consumers />;
  return <><Head title={t('There is no such page')} /><Panel><Empty title="404"><a href={link([])}>{t('Overview')}</a></Empty></Panel></>;
}

const connectionNames = {connecting: () => t('connecting'), live: () => t('live'), polling: () => t('live'), lost: () => t('no connection')};

function Foot() {
  const is = useStore(connection);
  const info = useStore(server);
  const looks = useStore(chosenTheme);
  const said = useStore(token);
  const themes = {auto: {icon: 'auto', name: t('Colours: as the system')}, light: {icon: 'sun', name: t('Colours: light')}, dark: {icon: 'moon', name: t('Colours: dark')}} as const;
  const next = {auto: 'light', light: 'dark', dark: 'auto'} as const;
  return (
    <div class="foot">
      <span class={`connection ${is}`} role="status"><i class="dot" />{connectionNames[is]()}</span>
      <span class="buttons">
        <Button look="quiet" icon={themes[looks].icon} hint={themes[looks].name} onClick={() => chosenTheme.set(next[looks])} />
        <Button look="quiet" lang={language.value === 'en' ? 'zh' : 'en'} onClick={() => language.set(language.value === 'en' ? 'zh' : 'en')}>{language.value === 'en' ? '中文' : 'English'}</Button>
        {said && <Button look="quiet" icon="out" hint={t('Sign out')} onClick={signOut} />}
      </span>
      {info && <small class="quiet">delayq {info.version}{info.name && ` · ${info.name}`}{info.tokens && !info.scopes.some((scope) => scope === 'admin' || scope === 'push' || scope === 'schedule') && ` · ${t('read only')}`}</small>}
    </div>
  );
}

function Frame({children}: {children: ComponentChildren}) {
  const here = useStore(route).path[0] ?? '';
  const is = useStore(connection);
  const dead = useStore(totals)?.counts.dead ?? 0;
  const main = useRef<HTMLElement>(null);
  // Another page begins at its top, and a screen reader reads its heading.
  useEffect(() => onArrival(() => requestAnimationFrame(() => {
    scrollTo(0, 0);
    main.current?.querySelector('h1')?.focus({preventScroll: true});
  })), []);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>{t('To the content')}</a>
      <aside>
        <a class="brand" href={link([])}><Mark />delayq</a>
        <nav aria-label={t('Views')}>
          {views.map((view) => (
            <a key={view.path} href={link(view.path ? [view.path] : [])} aria-current={view.path === here || view.also?.includes(here) ? 'page' : undefined}>
              <Icon name={view.icon} />
              <span>{t(view.name)}</span>
              {view.path === 'jobs' && dead > 0 && <i class="dot bad" title={t('{n} dead', {n: dead})} />}
            </a>
          ))}
        </nav>
        <Foot />
      </aside>
      <main ref={main} tabIndex={-1}>
        {is === 'lost' && <div class="lost" role="alert"><Icon name="warning" />{t('The connection to the server is lost. What you see is old; it goes on by itself when the server is back.')}</div>}
        {children}
      </main>
      <Notes />
    </div>
  );
}

const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path d="M16 7.500v8.800l5.600 3.300M24.400 11.500A9.600 9.600 0 1 1 19.600 7.100" />
  </svg>
);

function SignIn() {
  const [secret, setSecret] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const enter = async (event: Event) => {
    event.preventDefault();
    setProblem(undefined);
    try {
      const response = await fetch(new URL('v1/server', new URL('.', location.href.replace(/[?#].*/, ''))), {headers: {Authorization: `Bearer ${secret.trim()}`}});
      if (!response.ok) throw new Refusal(response.status, '', response.status === 401 ? t('The server does not know this token.') : `${response.status} ${response.statusText}`);
      server.set((await response.json()) as ServerInfo);
      signIn(secret.trim());
      needsToken.set(false);
    } catch (wrong) {
      setProblem(wrong);
    }
  };
  return (
    <main class="sign-in">
      <form class="panel" onSubmit={enter}>
        <h1><Mark />delayq</h1>
        <p>{t('This server wants a token.')}</p>
        <Field label={t('Token')} error={problem ? explain(problem) : undefined} hint={t('It is kept for this tab only, until you close it.')}>
          {(id) => <input id={id} type="password" autocomplete="off" autofocus value={secret} onInput={(event) => setSecret(event.currentTarget.value)} />}
        </Field>
        <Button look="main" type="submit" disabled={!secret.trim()}>{t('Sign in')}</Button>
      </form>
    </main>
  );
}

function App() {
  useStore(language);
  const wants = useStore(needsToken);
  const info = useStore(server);
  const said = useStore(token);
  const [problem, setProblem] = useState<unknown>();
  const isFirst = useRef(true);
  useEffect(() => {
    if (wants) return;
    let timer = 0;
    const begin = async () => {
      try {
        if (!server.value || isFirst.current) await loadServer();
        isFirst.current = false;
        setProblem(undefined);
        void follow();
      } catch (wrong) {
        if (wrong instanceof Refusal && wrong.status === 401) return;
        setProblem(wrong);
        timer = window.setTimeout(begin, 1500);
      }
    };
    void begin();
    return () => clearTimeout(timer);
  }, [wants, said]);
  const {path} = useStore(route);
  useEffect(() => {
    const view = views.find((each) => each.path === (path[0] ?? ''));
    document.title = `${path.at(-1) && path.length > 1 ? path.at(-1) : view ? t(view.name) : 'delayq'} · delayq`;
    document.documentElement.lang = language.value === 'zh' ? 'zh-CN' : 'en';
  });
  if (wants) return <SignIn />;
  if (!info) return problem ? <main class="sign-in"><Alert tone="bad">{explain(problem)}</Alert></main> : null;
  return <Frame><View /></Frame>;
}

// The server may have been replaced while the page was open: what it is is asked again.
connection.follow(() => {
  if (connection.value === 'live') loadServer().catch(() => undefined);
});

render(<App />, document.getElementById('app')!);
