// The same classes for `import` and `require`: there is one copy of them, so that `instanceof` holds everywhere.
export * from './index.js';
