/* Curves: loss and top-1 over the steps of a training, and the loss over the number of layers pruned (calibration). */
const FRAME = { width: 640, height: 300, left: 56, right: 84, top: 14, bottom: 36 };

/* About n round numbers from low to high. */
function ticks(low, high, n) {
  const range = high - low || 1, raw = range / n, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
  const list = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) list.push(Number(at.toPrecision(12)));
  return list;
}

function scaleOf(low, high, from, to) {
  const range = high - low || 1;
  return (value) => from + ((value - low) / range) * (to - from);
}

/* At most two points for each pixel: the least and the largest. */
function thinned(points) {
  const most = 2 * FRAME.width;
  if (points.length <= most) return points;
  const per = Math.ceil((2 * points.length) / most), kept = [];
  for (let at = 0; at < points.length; at += per) {
    const part = points.slice(at, at + per).sort((a, b) => a[1] - b[1]);
    kept.push(...[part[0], part[part.length - 1]].sort((a, b) => a[0] - b[0]));
  }
  return kept;
}

function addAxes(svg, x, y, xTicks, yTicks, name) {
  const { width, height, left, right, bottom } = FRAME;
  for (const value of yTicks) {
    svg.append(makeSvg('line', { class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      makeSvg('text', { x: left - 8, y: y(value) + 4, 'text-anchor': 'end' }, short(value)));
  }
  for (const value of xTicks) {
    svg.append(makeSvg('line', { class: 'grid', x1: x(value), x2: x(value), y1: height - bottom, y2: height - bottom + 4 }),
      makeSvg('text', { x: x(value), y: height - bottom + 18, 'text-anchor': 'middle' }, value.toLocaleString('en')));
  }
  svg.append(makeSvg('text', { x: (left + width - right) / 2, y: height - 3, 'text-anchor': 'middle' }, name));
}

/* Puts the names at the ends of the lines, one below the other where they would meet. */
function addNames(svg, series, y) {
  const ends = series.map((s) => ({ s, at: y(s.points[s.points.length - 1][1]) })).sort((a, b) => a.at - b.at);
  ends.forEach((end, k) => { if (k && end.at - ends[k - 1].at < 30) end.at = ends[k - 1].at + 30; });
  for (const { s, at } of ends) {
    const last = s.points[s.points.length - 1];
    svg.append(makeSvg('text', { class: 'value', x: FRAME.width - FRAME.right + 8, y: at }, s.text(last[1])),
      makeSvg('text', { x: FRAME.width - FRAME.right + 8, y: at + 13 }, s.name));
  }
}

function addHair(svg, series, x, axis) {
  const hair = makeSvg('line', { class: 'hair', y1: FRAME.top, y2: FRAME.height - FRAME.bottom, visibility: 'hidden' });
  const said = makeSvg('text', { x: FRAME.left + 6, y: FRAME.top + 10 });
  svg.append(hair, said);
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * FRAME.width;
    const near = series.map((s) => s.points.reduce((best, p) => (Math.abs(x(p[0]) - at) < Math.abs(x(best[0]) - at) ? p : best)));
    const closest = near.reduce((best, p) => (Math.abs(x(p[0]) - at) < Math.abs(x(best[0]) - at) ? p : best));
    hair.setAttribute('x1', x(closest[0]));
    hair.setAttribute('x2', x(closest[0]));
    hair.setAttribute('visibility', 'visible');
    said.textContent = `${axis} ${closest[0].toLocaleString('en')}: ${series.map((s, k) => `${s.name} ${s.text(near[k][1])}`).join(', ')}`;
  });
  svg.addEventListener('pointerleave', () => { hair.setAttribute('visibility', 'hidden'); said.textContent = ''; });
}

/* series: [{ name, colour, points: [[x, y]], marked, text }]. */
function chart(title, series, axis) {
  const shown = series.map((s) => ({ ...s, points: thinned(s.points.filter((p) => isNumber(p[1]))) })).filter((s) => s.points.length);
  if (!shown.length) return null;
  const all = shown.flatMap((s) => s.points), xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  let low = Math.min(...ys), high = Math.max(...ys);
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  low -= low >= 0 && low - pad < 0 ? low : pad;
  high += pad;
  const first = Math.min(...xs), last = Math.max(...xs);
  const x = scaleOf(first, last, FRAME.left, FRAME.width - FRAME.right), y = scaleOf(low, high, FRAME.height - FRAME.bottom, FRAME.top);
  const svg = makeSvg('svg', { viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: 'img', 'aria-label': title });
  addAxes(svg, x, y, ticks(first, last, 5).filter(Number.isInteger), ticks(low, high, 5), axis);
  for (const s of shown) {
    const path = s.points.map((p, k) => `${k ? 'L' : 'M'}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join('');
    svg.append(makeSvg('path', { d: path, fill: 'none', stroke: `var(${s.colour})`, 'stroke-width': 2, 'stroke-linejoin': 'round' }));
    if (s.points.length < (s.marked ? 80 : 2)) for (const p of s.points) svg.append(makeSvg('circle', { cx: x(p[0]), cy: y(p[1]), r: 3.2, fill: `var(${s.colour})` }));
  }
  addNames(svg, shown, y);
  addHair(svg, shown, x, axis);
  return make('figure', null, make('figcaption', null, title), svg);
}

function comparisonCharts() {
  if (report.verb !== 'compare') return [];
  const series = (key, name, colour) => ({ name, colour, points: report.layers.map((l, at) => [at + 1, isNumber(l[key]) ? 100 * l[key] : null]), text: (v) => `${short(v)} %` });
  return [chart('Error along the network', [series('error', 'error', '--error'), series('largest', 'largest', '--dense')], 'value')];
}

function calibrationCharts() {
  const curve = report.calibration && report.calibration.curve;
  if (!curve || !curve.length) return [];
  const of = (key, factor) => curve.map((p) => [p.layers, isNumber(p[key]) ? factor * p[key] : null]);
  return [
    chart('Error of the outputs over the layers pruned', [{ name: 'error', colour: '--error', points: of('outputs_error', 100), text: (v) => `${short(v)} %` }], 'layers'),
    chart('Top-1 over the layers pruned', [{ name: 'top-1', colour: '--kept', points: of('top1', 1), text: points }], 'layers'),
  ];
}

function evaluationTable(evaluations) {
  const head = ['Step', 'Epoch', 'Top-1', 'Top-5', 'Loss'].map((text) => make('th', { scope: 'col', class: 'number' }, text));
  const line = (e) => [e.step.toLocaleString('en'), e.epoch, points(e.top1), points(e.top5), short(e.loss)].map((text) => make('td', { class: 'number' }, String(text)));
  return make('details', null, make('summary', null, plural(evaluations.length, 'evaluation')),
    make('div', { class: 'scroll' }, make('table', null, make('thead', null, make('tr', null, head)), make('tbody', null, evaluations.map((e) => make('tr', null, line(e)))))));
}

function showCurves() {
  const steps = log.filter((line) => !line.eval), evaluations = log.filter((line) => line.eval);
  const of = (lines, key) => lines.map((line) => [line.step, line[key]]);
  const figures = [
    chart('Loss', [{ name: 'training', colour: '--dense', points: of(steps, 'loss'), text: short },
      { name: 'test', colour: '--error', points: of(evaluations, 'loss'), marked: true, text: short }], 'step'),
    chart('Accuracy', [{ name: 'top-1', colour: '--kept', points: of(evaluations, 'top1'), marked: true, text: points },
      { name: 'top-5', colour: '--sparse', points: of(evaluations, 'top5'), marked: true, text: points }], 'step'),
    chart('Rate of learning', [{ name: 'rate', colour: '--sparse', points: of(steps, 'lr'), text: short }], 'step'),
    chart('Images a second', [{ name: 'speed', colour: '--kept', points: of(steps, 'images_per_second'), text: short }], 'step'),
    ...calibrationCharts(), ...comparisonCharts(),
  ].filter(Boolean);
  if (!figures.length) return;
  byId('curves').hidden = false;
  byId('panels').append(...figures);
  if (evaluations.length) byId('curves').append(evaluationTable(evaluations));
}
