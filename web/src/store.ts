// Values that views follow.
import {useEffect, useState} from 'preact/hooks';

export class Store<T> {
  private readonly followers = new Set<() => void>();
  constructor(private now: T) {}
  get value(): T {
    return this.now;
  }
  set(value: T) {
    if (Object.is(value, this.now)) return;
    this.now = value;
    for (const tell of [...this.followers]) tell();
  }
  follow(tell: () => void): () => void {
    this.followers.add(tell);
    return () => void this.followers.delete(tell);
  }
}

/** The value of a store; the view is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState({});
  useEffect(() => store.follow(() => redraw({})), [store]);
  return store.value;
}

/** A store whose value survives a reload of the page, in this browser only. */
export function kept<T extends string>(name: string, usual: T, allowed: readonly T[]): Store<T> {
  let said: string | null = null;
  try {
    said = localStorage.getItem(name);
  } catch {
    // A browser may forbid storage; then nothing is kept.
  }
  const store = new Store<T>(allowed.find((each) => each === said) ?? usual);
  store.follow(() => {
    try {
      localStorage.setItem(name, store.value);
    } catch {
      // The same.
    }
  });
  return store;
}
