// The parts that all views are made of.
import type {ComponentChildren, JSX} from 'preact';
import {useCallback, useEffect, useId, useRef, useState} from 'preact/hooks';
import {Refusal, type State} from './api';
import {absolute, relative} from './format';
import {Store, useStore} from './store';
import {t, type Phrase} from './text';

// ---- icons: strokes on a grid of 20
const shapes = {
  overview: 'M3 16V9m5 7V4m5 12v-5m4 5V7',
  topics: 'M3 5h14M3 10h14M3 15h14',
  jobs: 'M4 4h12v12H4zM7 8h6M7 12h4',
  schedules: 'M10 5v5l3 2M10 3a7 7 0 1 1 0 14a7 7 0 0 1 0-14',
  callbacks: 'M4 13l4-4l3 3l5-6M12 6h4v4',
  consumers: 'M7 9a2.5 2.5 0 1 0 0-5a2.5 2.5 0 0 0 0 5M2.5 16c0-3 2-4.5 4.500-4.500s4.500 1.500 4.500 4.500M13 9a2 2 0 1 0 0-4M14 11.700c2 .3 3.500 1.800 3.500 4.300',
  pause: 'M7 5v10M13 5v10',
  play: 'M7 5l8 5l-8 5z',
  plus: 'M10 4v12M4 10h12',
  close: 'M5 5l10 10M15 5L5 15',
  sun: 'M10 7a3 3 0 1 0 0 6a3 3 0 0 0 0-6M10 2v2m0 12v2M2 10h2m12 0h2M4.500 4.500l1.400 1.400m8.200 8.200l1.400 1.400M4.500 15.500l1.400-1.400m8.200-8.200l1.400-1.400',
  moon: 'M16 12A7 7 0 0 1 8 4a7 7 0 1 0 8 8',
  auto: 'M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  search: 'M9 4a5 5 0 1 0 0 10a5 5 0 0 0 0-10M13 13l4 4',
  check: 'M4 10l4 4l8-8',
  warning: 'M10 3l8 14H2zM10 8v4m0 2v.5',
  back: 'M12 4l-6 6l6 6',
  out: 'M8 4H4v12h4M8 10h9m-3-3l3 3l-3 3',
} as const;
export type IconName = keyof typeof shapes;
export function Icon({name}: {name: IconName}) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  );
}

// ---- buttons and links
type ButtonProps = Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, 'icon'> & {look?: 'main' | 'danger' | 'quiet'; icon?: IconName; hint?: string};
export function Button({look, icon, hint, children, class: extra, ...rest}: ButtonProps) {
  return (
    <button type="button" {...rest} title={hint} aria-label={children ? undefined : hint} class={`button ${look ?? ''} ${extra ?? ''}`}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Does something and shows that it is under way; what goes wrong is told in a note. */
export function Act({act, done, ...rest}: Omit<ButtonProps, 'onClick'> & {act: () => Promise<unknown>; done?: string}) {
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      await act();
      if (done) note(done);
    } catch (problem) {
      fail(problem);
    } finally {
      setBusy(false);
    }
  };
  return <Button {...rest} disabled={rest.disabled || isBusy} aria-busy={isBusy} onClick={run} />;
}

// ---- notes: what was done, what went wrong
type Note = {key: number; text: string; bad: boolean};
const notes = new Store<Note[]>([]);
let lastNote = 0;
export function note(text: string, bad = false) {
  const key = ++lastNote;
  notes.set([...notes.value.slice(-3), {key, text, bad}]);
  setTimeout(() => dismiss(key), bad ? 12_000 : 5_000);
}
const dismiss = (key: number) => notes.set(notes.value.filter((each) => each.key !== key));
export function explain(problem: unknown): string {
  if (problem instanceof Refusal) {
    if (problem.status === 0) return t('The server cannot be reached.');
    return problem.message;
  }
  return String((problem as Error).message ?? problem);
}
export const fail = (problem: unknown) => note(explain(problem), true);
export function Notes() {
  return (
    <div class="notes" role="status" aria-live="polite">
      {useStore(notes).map((each) => (
        <div key={each.key} class={`note ${each.bad ? 'bad' : ''}`}>
          <Icon name={each.bad ? 'warning' : 'check'} />
          <span>{each.text}</span>
          <Button look="quiet" icon="close" hint={t('Dismiss')} onClick={() => dismiss(each.key)} />
        </div>
      ))}
    </div>
  );
}

// ---- dialogs
export function Dialog({title, onClose, children, wide}: {title: string; onClose: () => void; children: ComponentChildren; wide?: boolean}) {
  const element = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    const dialog = element.current!;
    if (!dialog.open) dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog ref={element} class={wide ? 'wide' : ''} aria-labelledby={name}
      onCancel={(event) => (event.preventDefault(), onClose())}
      onClick={(event) => event.target === element.current && onClose()}>
      <div class="dialog">
        <header>
          <h2 id={name}>{title}</h2>
          <Button look="quiet" icon="close" hint={t('Close')} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Asks before something that cannot be undone. With `word`, that word has to be typed. */
export function Confirm({title, children, action, word, act, onClose}: {
  title: string; children: ComponentChildren; action: string; word?: string; act: () => Promise<unknown>; onClose: () => void;
}) {
  const [typed, setTyped] = useState('');
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="prose">{children}</div>
      {word !== undefined && (
        <Field label={t('Type {word} to confirm', {word})}>
          {(id) => <input id={id} value={typed} autofocus autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />}
        </Field>
      )}
      <footer>
        <Button onClick={onClose}>{t('Back')}</Button>
        <Act look="danger" disabled={word !== undefined && typed !== word} act={async () => (await act(), onClose())}>{action}</Act>
      </footer>
    </Dialog>
  );
}

// ---- forms
export function Field({label, hint, error, children, class: extra}: {
  label: string; hint?: string; error?: string; children: (id: string) => ComponentChildren; class?: string;
}) {
  const id = useId();
  return (
    <div class={`field ${extra ?? ''} ${error ? 'wrong' : ''}`}>
      <label for={id}>{label}</label>
      {children(id)}
      {error ? <small class="error" role="alert">{error}</small> : hint && <small>{hint}</small>}
    </div>
  );
}

export function Segments<T extends string>({label, value, options, onChange}: {label: string; value: T; options: readonly (readonly [T, ComponentChildren])[]; onChange: (value: T) => void}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => onChange(key)}>{text}</button>
      ))}
    </div>
  );
}

// ---- words about jobs
const stateNames: Record<State, Phrase> = {delayed: 'delayed', ready: 'ready', reserved: 'reserved', done: 'done', dead: 'dead'};
export const stateName = (state: State) => t(stateNames[state]);
export function StateBadge({state}: {state: State}) {
  return <span class={`badge state-${state}`}>{stateName(state)}</span>;
}

/** A moment, as people say it; the exact time is its title. */
export function Time({at, both}: {at: string; both?: boolean}) {
  useStore(seconds);
  return (
    <time dateTime={at} title={`${absolute(at)}\n${at}`}>
      {relative(at)}
      {both && <span class="quiet"> · {absolute(at)}</span>}
    </time>
  );
}
/** Ticks once a second, for relative times. */
const seconds = new Store(0);
setInterval(() => seconds.set(seconds.value + 1), 1000);

// ---- what is said when there is nothing to show
export function Empty({title, children, command}: {title: string; children?: ComponentChildren; command?: string[]}) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {command?.map((line) => <Code key={line} text={line} />)}
    </div>
  );
}

export function Code({text}: {text: string}) {
  return (
    <div class="code">
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} />
    </div>
  );
}
export function Copy({text}: {text: string}) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without https a browser has no clipboard for pages: the old way.
      const area = document.body.appendChild(document.createElement('textarea'));
      area.value = text;
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return <Button look="quiet" icon={isDone ? 'check' : 'copy'} hint={t('Copy')} onClick={copy} />;
}

export function Panel({title, tools, children, class: extra}: {title?: ComponentChildren; tools?: ComponentChildren; children: ComponentChildren; class?: string}) {
  return (
    <section class={`panel ${extra ?? ''}`}>
      {(title || tools) && (
        <header>
          <h2>{title}</h2>
          <div class="tools">{tools}</div>
        </header>
      )}
      {children}
    </section>
  );
}

export function Head({title, lead, back, children}: {title: ComponentChildren; lead?: ComponentChildren; back?: {to: string; name: string}; children?: ComponentChildren}) {
  return (
    <div class="head">
      <div>
        {back && <a class="back" href={back.to}><Icon name="back" />{back.name}</a>}
        <h1 tabIndex={-1}>{title}</h1>
        {lead && <p class="quiet">{lead}</p>}
      </div>
      <div class="tools">{children}</div>
    </div>
  );
}

/** What the server says of a time, in the viewer's zone. */
export const inOwnZone = (text: string) => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (moment) => absolute(moment));

export function Alert({children, tone = 'warn'}: {children: ComponentChildren; tone?: 'warn' | 'bad' | 'info'}) {
  return <div class={`alert ${tone}`} role={tone === 'bad' ? 'alert' : undefined}><Icon name="warning" /><div>{children}</div></div>;
}

// ---- loading
/** Loads again whenever `key` changes, and every `seconds` while the page is visible. What was there stays until the new answer has come. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>, everySeconds = 0) {
  const [state, setState] = useState<{key: string; value?: T; problem?: unknown}>({key});
  const current = useRef(load);
  current.current = load;
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ends = new AbortController();
    current.current(ends.signal).then(
      (value) => !ends.signal.aborted && setState({key, value}),
      (problem) => !ends.signal.aborted && setState((old) => ({key, value: old.key === key ? old.value : undefined, problem})),
    );
    return () => ends.abort();
  }, [key, turn]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  useEffect(() => {
    if (!everySeconds) return;
    const timer = setInterval(() => document.hidden || reload(), everySeconds * 1000);
    return () => clearInterval(timer);
  }, [everySeconds]);
  return {value: state.key === key ? state.value : undefined, stale: state.value, problem: state.key === key ? state.problem : undefined, reload};
}
export function Problem({problem}: {problem: unknown}) {
  return problem ? <Alert tone="bad">{explain(problem)}</Alert> : null;
}

/** A header of a column by which a table can be sorted. */
export function Sortable<K extends string>({name, by, down, onSort, children, class: extra}: {
  name: K; by: K; down: boolean; onSort: (name: K) => void; children: ComponentChildren; class?: string;
}) {
  return (
    <th class={extra} aria-sort={name === by ? (down ? 'descending' : 'ascending') : undefined}>
      <button type="button" class="sort" onClick={() => onSort(name)}>
        {children}
        <span aria-hidden="true">{name === by ? (down ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}
