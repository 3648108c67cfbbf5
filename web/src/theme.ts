// Light or dark: as the system says, unless the viewer has chosen.
import {kept, Store} from './store';

export const chosenTheme = kept('delayq-theme', 'auto', ['auto', 'light', 'dark'] as const);
const system = matchMedia('(prefers-color-scheme: dark)');
/** What is shown now. */
export const theme = new Store<'light' | 'dark'>('light');

function apply() {
  const shown = chosenTheme.value === 'auto' ? (system.matches ? 'dark' : 'light') : chosenTheme.value;
  document.documentElement.dataset.theme = shown;
  theme.set(shown);
}
chosenTheme.follow(apply);
system.addEventListener('change', apply);
apply();
