// The address says what is shown: #/topics/order?x=y. Below the #, so no server or proxy needs to know the paths.
import {Store} from './store';

export type Route = {path: string[]; query: Record<string, string>};

function read(): Route {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const decode = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  return {path: path ? path.split('/').map(decode) : [], query: Object.fromEntries(new URLSearchParams(query))};
}
export const route = new Store<Route>(read());

let arrive = () => {};
/** Calls this when the viewer has gone to another page, but not on the way back: the browser knows where that was. */
export function onArrival(tell: () => void): () => void {
  arrive = tell;
  return () => (arrive = () => {});
}
const mark = () => history.replaceState({isKnown: true}, '');
mark();
window.addEventListener('hashchange', () => {
  const isNew = !history.state?.isKnown;
  const before = route.value.path.join('/');
  mark();
  route.set(read());
  if (isNew && route.value.path.join('/') !== before) arrive();
});

export function link(path: string[], query: Record<string, string | undefined> = {}): string {
  const said = Object.entries(query).filter(([, value]) => value) as [string, string][];
  return `#/${path.map(encodeURIComponent).join('/')}${said.length ? `?${new URLSearchParams(said)}` : ''}`;
}
export function go(to: string) {
  location.hash = to;
}
/** The same without a step in the browser's history: for filters that change with every letter. */
export function become(to: string) {
  history.replaceState(history.state, '', to);
  route.set(read());
}
