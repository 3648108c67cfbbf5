// What falls due: stored jobs by topic, and what schedules will make.
import {useEffect, useMemo, useState} from 'preact/hooks';
import {get, query, serverNow, type Forecast} from './api';
import {StackedBars, type Layer} from './chart';
import {axisTime, localInput, number, short} from './format';
import {topics} from './live';
import {link} from './route';
import {Button, Panel, Problem, Segments, useLoad} from './ui';
import {t} from './text';

const spans = {hour: 3600, day: 86_400, month: 30 * 86_400} as const;
type Span = keyof typeof spans;
const bins: Record<Span, number> = {hour: 60, day: 48, month: 60};
const mostTopics = 5;
const palette = ['chart-1', 'chart-2', 'chart-3', 'chart-4', 'chart-5'];

type Range = {from: number; to: number; bins: number};

async function load(range: Range, only: string | undefined, signal: AbortSignal) {
  const ask = (topic: string | undefined) => get<Forecast>(`v1/forecast${query({from: range.from, to: range.to, bins: range.bins, topic})}`, signal);
  const all = await ask(only);
  if (only !== undefined) return {all, named: [[only, all.bins] as const]};
  const largest = [...topics.value.values()].filter((topic) => topic.counts.delayed > 0)
    .sort((a, b) => b.counts.delayed - a.counts.delayed || (a.topic < b.topic ? -1 : 1)).slice(0, mostTopics);
  const named = await Promise.all(largest.map(async (topic) => [topic.topic, (await ask(topic.topic)).bins] as const));
  return {all, named};
}

export function Future({topic}: {topic?: string}) {
  const [span, setSpan] = useState<Span>('hour');
  const [zoom, setZoom] = useState<Range>();
  const [bin, setBin] = useState<number>();
  const [isTable, setTable] = useState(false);
  const range = (): Range => {
    if (zoom) return zoom;
    const from = Math.floor(serverNow() / 1000);
    return {from, to: from + spans[span], bins: innerWidth < 760 ? bins[span] / 2 : bins[span]};
  };
  const hasTopics = topics.value.size > 0;
  const {value, problem} = useLoad(`${topic ?? ''} ${span} ${zoom?.from} ${zoom?.to} ${hasTopics}`, (signal) => load(range(), topic, signal), 5);
  const shown = useMemo(() => {
    if (!value) return undefined;
    const {all, named} = value;
    const sum = (list: readonly number[]) => list.reduce((a, b) => a + b, 0);
    const layers: Layer[] = named.filter(([, values]) => sum(values) > 0).map(([label, values], at) => ({label, colour: palette[at], values: [...values]}));
    const rest = all.bins.map((count, at) => Math.max(0, count - layers.reduce((most, layer) => most + layer.values[at], 0)));
    if (sum(rest) > 0) layers.push({label: named.length ? t('other topics') : t('all topics'), colour: 'chart-rest', values: rest});
    if (sum(all.scheduled) > 0) layers.push({label: t('from schedules, not stored yet'), colour: 'chart-schedule', hatched: true, values: all.scheduled});
    const from = Date.parse(all.from) / 1000;
    const to = Date.parse(all.to) / 1000;
    return {layers, from, to, isComplete: all.scheduled_complete, total: sum(all.bins) + sum(all.scheduled)};
  }, [value]);
  useEffect(() => setBin(undefined), [span, zoom]);

  const zoomTo = (from: number, to: number) => setZoom({from: Math.floor(from), to: Math.ceil(to), bins: Math.max(1, Math.min(60, Math.floor(to - from)))});
  const spanNames = {hour: t('Next hour'), day: t('Next day'), month: t('Next month')};
  const step = shown ? (shown.to - shown.from) / (shown.layers[0]?.values.length || 1) : 0;
  const binName = (at: number) => `${axisTime(shown!.from + at * step, step * 60)} – ${axisTime(shown!.from + (at + 1) * step, step * 60)}`;
  return (
    <Panel class="future" title={t('The future')} tools={
      <>
        {zoom && topic && <a class="button quiet" href={link(['jobs'], {topic, state: 'delayed', after: localInput(zoom.from * 1000), before: localInput(zoom.to * 1000)})}>{t('Show the jobs')}</a>}
        {zoom && <Button look="quiet" icon="back" onClick={() => setZoom(undefined)}>{t('Whole span')}</Button>}
        <Segments label={t('Span')} value={span} onChange={(next) => (setZoom(undefined), setSpan(next))} options={(Object.keys(spans) as Span[]).map((key) => [key, spanNames[key]] as const)} />
      </>
    }>
      <Problem problem={problem} />
      {shown && shown.total === 0 && <p class="quiet nothing">{t('Nothing falls due in this time.')}</p>}
      {shown && shown.total > 0 && !isTable && (
        <StackedBars {...shown} height={topic ? 180 : 240} onHover={setBin}
          onZoom={zoomTo}
          label={t('{n} jobs fall due in this time: {list}', {n: number(shown.total), list: shown.layers.map((layer) => `${layer.label} ${number(layer.values.reduce((a, b) => a + b, 0))}`).join(', ')})} />
      )}
      {shown && shown.total > 0 && isTable && (
        <div class="scroll short" tabIndex={0}>
          <table>
            <thead><tr><th>{t('Time')}</th>{shown.layers.map((layer) => <th key={layer.label} class="count">{layer.label}</th>)}</tr></thead>
            <tbody>
              {shown.layers[0].values.map((_, at) => at).filter((at) => shown.layers.some((layer) => layer.values[at] > 0)).map((at) => (
                <tr key={at}><td>{step >= 10 ? <button type="button" class="link" title={t('Only this time')} onClick={() => zoomTo(shown.from + at * step, shown.from + (at + 1) * step)}>{binName(at)}</button> : binName(at)}</td>{shown.layers.map((layer) => <td key={layer.label} class="count">{number(layer.values[at])}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown && shown.total > 0 && (
        <div class="legend">
          <span class="when">{bin === undefined ? `${t('{n} job|{n} jobs', {n: shown.total})}${shown.isComplete ? '' : '+'}` : binName(bin)}</span>
          {shown.layers.map((layer) => (
            <span key={layer.label}>
              <i class={`swatch ${layer.colour} ${layer.hatched ? 'hatched' : ''}`} />
              {layer.label} <b>{short(bin === undefined ? layer.values.reduce((a, b) => a + b, 0) : layer.values[bin] ?? 0)}</b>
            </span>
          ))}
          <Button look="quiet" class="end" onClick={() => setTable(!isTable)}>{isTable ? t('As a chart') : t('As a table')}</Button>
        </div>
      )}
    </Panel>
  );
}
