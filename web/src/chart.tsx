// Charts: uPlot, in the colours of the theme.
import {useEffect, useRef, useState} from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import {axisTime, short} from './format';
import {useStore} from './store';
import {theme} from './theme';

export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** A box whose width follows the page. */
function useWidth(): [preact.RefObject<HTMLDivElement>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}

function axes(): uPlot.Axis[] {
  const font = '11px system-ui, sans-serif';
  const look = {stroke: colour('quiet'), font, ticks: {show: false}, grid: {stroke: colour('line'), width: 1}};
  return [
    {...look, grid: {show: false}, space: 70, size: 28, values: (_, at) => at.map((each) => axisTime(each, at.length > 1 ? at[at.length - 1] - at[0] : 0))},
    {...look, size: 46, space: 34, values: (_, at) => at.map((each) => (Number.isInteger(each) ? short(each) : ''))},
  ];
}

export type Line = {label: string; colour: string; values: number[]};

/** Lines over the last minutes. `version` says that the numbers have changed. */
export function LineChart({time, lines, version, height = 190, label}: {time: number[]; lines: Line[]; version: number; height?: number; label: string}) {
  const [box, width] = useWidth();
  const plot = useRef<uPlot>();
  const looks = useStore(theme);
  const names = lines.map((line) => line.label + line.colour).join();
  useEffect(() => {
    if (!width) return;
    const made = new uPlot({
      width, height, legend: {show: false}, padding: [8, 16, 0, 0],
      cursor: {drag: {x: false, y: false}, points: {size: 6}},
      scales: {y: {range: (_, __, most) => [0, Math.max(4, most * 1.15)]}},
      axes: axes(),
      series: [{}, ...lines.map((line) => ({label: line.label, stroke: colour(line.colour), width: 1.6, points: {show: false}}))],
    }, [time, ...lines.map((line) => line.values)], box.current!);
    plot.current = made;
    return () => made.destroy();
  }, [width, height, looks, names]);
  useEffect(() => {
    plot.current?.setData([time.slice(), ...lines.map((line) => line.values.slice())]);
  }, [version, width]);
  return <div class="chart" ref={box} role="img" aria-label={label} style={{height: `${height}px`}} />;
}

export type Layer = {label: string; colour: string; hatched?: boolean; values: number[]};

function hatch(of: string): CanvasPattern | string {
  const tile = document.createElement('canvas');
  const scale = devicePixelRatio || 1;
  tile.width = tile.height = Math.round(6 * scale);
  const paint = tile.getContext('2d')!;
  paint.strokeStyle = of;
  paint.lineWidth = 1.6 * scale;
  for (const shift of [-1, 0, 1]) {
    paint.beginPath();
    paint.moveTo(shift * tile.width, tile.height);
    paint.lineTo((shift + 1) * tile.width, 0);
    paint.stroke();
  }
  return paint.createPattern(tile, 'repeat') ?? of;
}

/** Bars one on top of the other. Pulling over a part of it asks for that part alone. */
export function StackedBars({from, to, layers, height = 260, label, onZoom, onHover}: {
  from: number; to: number; layers: Layer[]; height?: number; label: string; onZoom?: (from: number, to: number) => void; onHover?: (bin: number | undefined) => void;
}) {
  const [box, width] = useWidth();
  const looks = useStore(theme);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const hover = useRef(onHover);
  hover.current = onHover;
  useEffect(() => {
    const bins = layers[0]?.values.length ?? 0;
    if (!width || !bins) return;
    const step = (to - from) / bins;
    const time = Array.from({length: bins}, (_, bin) => from + (bin + 0.5) * step);
    // The sums are drawn, the highest first, so that each hides the lower part of the one behind it.
    const sums: number[][] = [];
    layers.forEach((layer, at) => sums.push(layer.values.map((value, bin) => value + (at ? sums[at - 1][bin] : 0))));
    const bars = uPlot.paths.bars!({size: [0.86, 60, 1], radius: 0.08});
    const background = colour('panel');
    const shown = layers.map((layer, at) => ({layer, sum: sums[at]})).reverse();
    const series: uPlot.Series[] = [{}];
    const data: number[][] = [time];
    for (const {layer, sum} of shown) {
      const paint = colour(layer.colour);
      if (layer.hatched) {
        series.push({label: '', fill: background, stroke: background, width: 0, paths: bars, points: {show: false}});
        data.push(sum);
      }
      series.push({label: layer.label, fill: layer.hatched ? () => hatch(paint) as string : paint, stroke: paint, width: layer.hatched ? 1 : 0, paths: bars, points: {show: false}});
      data.push(sum);
    }
    const made = new uPlot({
      width, height, legend: {show: false}, padding: [8, 16, 0, 0],
      cursor: {y: false, points: {show: false}, drag: {x: Boolean(zoom.current), y: false, setScale: false, dist: 8}},
      scales: {x: {range: [from, to]}, y: {range: (_, __, most) => [0, Math.max(4, most * 1.1)]}},
      axes: axes(),
      series,
      hooks: {
        // A click on a bar asks for its time alone; uPlot keeps the click to itself after a pull.
        ready: [(plot) => plot.over.addEventListener('click', (event) => {
          const bin = Math.floor((plot.posToVal(event.offsetX, 'x') - from) / step);
          if (step >= 10 && bin >= 0 && bin < bins) zoom.current?.(from + bin * step, from + (bin + 1) * step);
        })],
        setCursor: [(plot) => hover.current?.(plot.cursor.idx ?? undefined)],
        setSelect: [(plot) => {
          if (plot.select.width < 8) return;
          const at = (left: number) => from + Math.round((plot.posToVal(left, 'x') - from) / step) * step;
          const [first, last] = [at(plot.select.left), at(plot.select.left + plot.select.width)];
          plot.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
          if (last - first >= 10) zoom.current?.(first, last);
        }],
      },
    }, data as uPlot.AlignedData, box.current!);
    return () => made.destroy();
  }, [width, height, looks, from, to, layers]);
  return <div class={`chart ${onZoom ? 'zooms' : ''}`} ref={box} role="img" aria-label={label} style={{height: `${height}px`}} onMouseLeave={() => onHover?.(undefined)} />;
}

export function Sparkline({values}: {values: readonly number[]}) {
  const [width, height] = [72, 20];
  const most = Math.max(1, ...values);
  const shown = values.length > 1 ? values : [0, 0];
  const points = shown.map((value, at) => `${((at / (shown.length - 1)) * width).toFixed(1)},${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  );
}
