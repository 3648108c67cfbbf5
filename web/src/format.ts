// How numbers, times and sizes are written, in the viewer's language and time zone.
import {serverNow} from './api';
import {language, t} from './text';

const locale = () => (language.value === 'zh' ? 'zh-CN' : navigator.language.startsWith('zh') ? 'en-GB' : navigator.language);

export function number(value: number): string {
  return new Intl.NumberFormat(locale(), {maximumFractionDigits: value < 10 && !Number.isInteger(value) ? 1 : 0}).format(value);
}
/** 12,345 as it is, 1,234,567 as 1.23M: for narrow places. */
export function short(value: number): string {
  if (value < 100_000) return number(Math.round(value));
  return new Intl.NumberFormat(locale(), {notation: 'compact', maximumFractionDigits: 2}).format(value);
}
export function rate(value: number): string {
  return value === 0 ? '0' : value < 10 ? number(Math.round(value * 10) / 10) : short(value);
}
export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; ++unit) value /= 1024;
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
export function milliseconds(value: number): string {
  if (value < 1000) return `${value} ms`;
  if (value >= 67_108_864) return `> ${duration(64_800_000)}`;
  return duration(value);
}
const units = {en: {d: 'd', h: 'h', m: 'm', s: 's'}, zh: {d: '天', h: '小时', m: '分', s: '秒'}};
/** The largest unit and the one below it: "2h 5m". */
export function duration(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  const {d, h, m, s} = units[language.value];
  const steps: [number, string][] = [[86_400, d], [3600, h], [60, m], [1, s]];
  const at = steps.findIndex(([size]) => seconds >= size);
  if (at < 0) return `0${s}`;
  const [size, unit] = steps[at];
  const whole = Math.floor(seconds / size);
  const next = steps[at + 1];
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
  return `${whole}${unit}${rest && whole < 100 ? `${language.value === 'zh' ? '' : ' '}${rest}${next[1]}` : ''}`;
}
/** "in 2h 5m", "3m ago", "now". */
export function relative(moment: string | number): string {
  const difference = (typeof moment === 'number' ? moment : Date.parse(moment)) - serverNow();
  if (Math.abs(difference) < 1000) return t('now');
  return difference > 0 ? t('in {time}', {time: duration(difference)}) : t('{time} ago', {time: duration(difference)});
}
export function absolute(moment: string | number): string {
  return new Intl.DateTimeFormat(locale(), {
    year: 'numeric', month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
  }).format(new Date(moment));
}
/** For the axis of a chart, as fine as what it shows. */
export function axisTime(seconds: number, span: number): string {
  const day: Intl.DateTimeFormatOptions = {month: 'short', day: 'numeric'};
  const time: Intl.DateTimeFormatOptions = {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'};
  const options = span > 4 * 86_400 ? day : span > 86_400 * 1.2 ? {...day, ...time} : span < 240 ? {...time, second: '2-digit' as const} : time;
  return new Intl.DateTimeFormat(locale(), options).format(new Date(seconds * 1000));
}
export function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
/** The value of an <input type="datetime-local"> in the viewer's zone. */
export function localInput(ms: number): string {
  const date = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 19);
}
