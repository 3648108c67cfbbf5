// JSON as it was written: JSON.parse would change large numbers, and people look here for what was really pushed.

/** Where the value that begins at `start` ends. */
function endOf(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; ++at) {
    const char = text[at];
    if (char === '"') {
      for (++at; at < text.length && text[at] !== '"'; ++at) if (text[at] === '\\') ++at;
      if (depth === 0) return at + 1;
    } else if (char === '{' || char === '[') {
      ++depth;
    } else if (char === '}' || char === ']') {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (char === ',' && depth === 0) {
      return at;
    }
  }
  return text.length;
}

/** The text of a member of an object, as it is written there. */
export function memberText(object: string, name: string): string | undefined {
  let at = object.indexOf('{') + 1;
  while (at > 0 && at < object.length) {
    const start = object.indexOf('"', at);
    if (start < 0) return undefined;
    const nameEnd = endOf(object, start);
    const colon = object.indexOf(':', nameEnd);
    let from = colon + 1;
    while (/\s/.test(object[from])) ++from;
    const to = endOf(object, from);
    if (object.slice(start, nameEnd) === JSON.stringify(name)) return object.slice(from, to).trimEnd();
    at = to + 1;
  }
  return undefined;
}

/** The same JSON on several lines. */
export function pretty(text: string): string {
  let out = '';
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (let at = 0; at < text.length; ++at) {
    const char = text[at];
    if (char === '"') {
      let end = at + 1;
      for (; end < text.length && text[end] !== '"'; ++end) if (text[end] === '\\') ++end;
      out += text.slice(at, end + 1);
      at = end;
    } else if (char === '{' || char === '[') {
      const close = char === '{' ? '}' : ']';
      const next = text.slice(at + 1).search(/\S/) + at + 1;
      if (text[next] === close) {
        out += char + close;
        at = next;
      } else {
        ++depth;
        out += char + line();
      }
    } else if (char === '}' || char === ']') {
      --depth;
      out += line() + char;
    } else if (char === ',') {
      out += char + line();
    } else if (char === ':') {
      out += ': ';
    } else if (!/\s/.test(char)) {
      out += char;
    }
  }
  return out;
}

/** Offset, bytes in hexadecimal, and what of it is ASCII. */
export function hex(bytes: Uint8Array, most: number): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const row = bytes.subarray(at, at + 16);
    const digits = [...row].map((byte) => byte.toString(16).padStart(2, '0'));
    const shown = `${digits.slice(0, 8).join(' ').padEnd(23)}  ${digits.slice(8).join(' ').padEnd(23)}`;
    lines.push(`${at.toString(16).padStart(8, '0')}  ${shown}  ${[...row].map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('')}`);
  }
  return lines.join('\n');
}
