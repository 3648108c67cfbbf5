// Makes the dashboard one file, which the server has inside: node build.mjs OUTPUT, with NODE_PATH as tools/npm prints it.
// The file is a list of lines, "name type bytes tag", an empty line, and then the files themselves, compressed with gzip, in that order.
// A name with a tag in it never gets other contents, so browsers may keep it for ever. `index.html` refers to the others.
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';

const require = createRequire(join(process.env.NODE_PATH, 'x.js'));
const {buildSync} = require('esbuild');
const here = dirname(fileURLToPath(import.meta.url));

export function bundle({minify = true} = {}) {
  const {outputFiles} = buildSync({
    absWorkingDir: here,
    entryPoints: {app: 'src/main.tsx'},
    nodePaths: [process.env.NODE_PATH],
    bundle: true,
    minify,
    write: false,
    outdir: 'out',
    format: 'esm',
    target: ['chrome100', 'firefox100', 'safari15.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: {'.svg': 'dataurl'},
    legalComments: 'none',
    logLevel: 'warning',
  });
  const files = [];
  const add = (name, type, bytes, fixed) => {
    const tag = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
    const at = name.lastIndexOf('.');
    files.push({name: fixed ? name : `${name.slice(0, at)}-${tag}${name.slice(at)}`, type, tag, bytes});
    return files.at(-1).name;
  };
  const made = Object.fromEntries(outputFiles.map((file) => [file.path.slice(file.path.lastIndexOf('.') + 1), Buffer.from(file.contents)]));
  const script = add('app.js', 'text/javascript; charset=utf-8', made.js);
  const style = add('app.css', 'text/css; charset=utf-8', made.css);
  const icon = add('icon.svg', 'image/svg+xml', readFileSync(join(here, 'src/icon.svg')));
  const page = readFileSync(join(here, 'src/index.html'), 'utf8')
    .replace('app.js', script).replace('app.css', style).replace('icon.svg', icon);
  add('index.html', 'text/html; charset=utf-8', Buffer.from(page), true);
  return files;
}

function main(output) {
  const files = bundle().map((file) => ({...file, packed: gzipSync(file.bytes, {level: 9})}));
  const head = files.map((file) => `${file.name} ${file.packed.length} ${file.tag} ${file.type}\n`).join('');
  mkdirSync(dirname(output), {recursive: true});
  writeFileSync(output, Buffer.concat([Buffer.from(`${head}\n`), ...files.map((file) => file.packed)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv[2]);
