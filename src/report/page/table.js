/* The table of layers: one row per layer, or per step of a run that was timed. It sorts by any column, and filters by a
 * text and by kind; the arrow keys go through its rows. */
const MOST_ROWS = 400;

/* What the layers of both reports have, in one form. Shares are 0 .. 1; what is not known is null. */
function rowOfLayer(layer) {
  const total = layer.total > 0 ? layer.total : null;
  const known = (value) => (layer.calibrated && isNumber(value) ? value : null);
  return {
    name: layer.name, op: layer.op, weight: layer.weight, shape: layer.shape,
    state: layer.pruned ? 'sparse' : 'dense', eligible: layer.eligible, holds: layer.holds_pattern,
    zeros: isNumber(layer.zero_ratio) ? layer.zero_ratio : null,
    kept: layer.pruned && total ? layer.kept / total : null,
    keptBefore: layer.pruned && total ? layer.kept_identity / total : null,
    errorBefore: known(layer.error_before), errorAfter: known(layer.error_after),
    effect: layer.effect > 0 ? layer.effect : null,
    ...targetsOf(layer.name),
    denseMs: inMilliseconds(predicted.get(layer.name)?.dense_seconds), sparseMs: inMilliseconds(predicted.get(layer.name)?.pruned_seconds),
    moved: (layer.permuted || []).join(', '), reason: layer.reason || predicted.get(layer.name)?.reason || '',
  };
}

/* What each target makes of the layer, as 'target 0' and so on. */
const targets = (layerReport && layerReport.targets) || [];
const targetLayers = targets.map((target) => new Map(target.layers.map((layer) => [layer.name, layer])));
function targetsOf(name) {
  return Object.fromEntries(targetLayers.map((layers, at) => {
    const layer = layers.get(name);
    const says = !layer ? '' : layer.answer === 'taken' && layer.pays === false ? 'taken, does not pay' : layer.answer;
    return [`target ${at}`, layer && layer.reason ? `${says}: ${layer.reason}` : says];
  }));
}

/* What a run of the library's own engine is predicted to take, layer by layer. */
const prediction = layerReport && layerReport.prediction;
const predicted = new Map(((prediction && prediction.layers) || []).map((layer) => [layer.name, layer]));
function inMilliseconds(seconds) {
  return seconds > 0 ? 1000 * seconds : null;
}

function rowOfStep(step, layers) {
  const layer = layers.get(step.name);
  return {
    ...(layer ? rowOfLayer(layer) : { zeros: null, shape: null, reason: '', kept: null }),
    name: step.name, op: step.op, kernel: step.kernel, state: step.sparse ? 'sparse' : 'dense', holds: step.holds_pattern,
    denseMs: step.dense_ms > 0 ? step.dense_ms : null, sparseMs: isNumber(step.ms) ? step.ms : null,
    share: step.share, gflops: step.gflops > 0 ? step.gflops : null, keptBefore: null,
    ratio: step.dense_ms > 0 && step.ms > 0 ? step.dense_ms / step.ms : null,
  };
}

/* A value of a comparison of two networks. */
function rowOfValue(value) {
  return {
    name: value.name, op: value.op, shape: value.shape, state: isNumber(value.error) && value.error <= report.tolerance ? 'sparse' : 'dense',
    other: value.other === value.name ? '' : value.other, gap: isNumber(value.error) ? value.error : null, largest: isNumber(value.largest) ? value.largest : null,
    reason: [value.same_shape ? '' : 'another shape', value.output ? 'output' : '', value.reordered ? 'channels reordered' : '', value.matched === 'name' ? '' : 'matched by structure'].filter(Boolean).join(', '),
  };
}

function collectRows() {
  if (report.verb === 'compare') return report.layers.map(rowOfValue);
  const list = layerReport ? layerReport.layers : [];
  if (report.verb !== 'bench') return list.map(rowOfLayer);
  const layers = new Map(list.map((layer) => [layer.name, layer]));
  return (report.layers || []).map((step) => rowOfStep(step, layers));
}

const rows = collectRows();
const rowsByName = new Map();
for (const row of rows) if (!rowsByName.has(row.name) || row.shape) rowsByName.set(row.name, row);

/* Columns: `meter` has a bar from 0 to the largest value (or to 1, where the value is a share), `tick` a mark on it. */
const timeHint = prediction ? 'of the layer\u2019s step, predicted from costs; nothing was run' : undefined;
const COLUMNS = [
  { key: 'name', title: report.verb === 'bench' ? 'Step' : report.verb === 'compare' ? 'Node' : 'Layer', kind: 'name' },
  { key: 'op', title: 'Operator', kind: 'short' },
  { key: 'shape', title: report.verb === 'compare' ? 'Shape' : 'Weight', kind: 'short', text: (v) => (v ? v.join('\u00d7') : ''), order: (v) => (v ? v.reduce((a, b) => a * b, 1) : null) },
  { key: 'state', title: 'State', kind: 'pill' },
  { key: 'kernel', title: 'Kernel', kind: 'text' },
  { key: 'other', title: 'In the other', kind: 'text' },
  { key: 'gap', title: 'Error', kind: 'meter', percent: true, colour: '--error', hint: 'root of the mean squared difference, over that of the value' },
  { key: 'largest', title: 'Largest', kind: 'meter', percent: true, colour: '--dense', hint: 'largest difference over the largest element' },
  { key: 'zeros', title: 'Zeros', kind: 'meter', share: true, colour: '--dense' },
  { key: 'kept', title: 'Weight kept', kind: 'meter', share: true, colour: '--kept', tick: 'keptBefore', hint: 'share of the magnitude that is kept; the mark: in the order of the file' },
  { key: 'errorBefore', title: 'Error, masked', kind: 'meter', percent: true, colour: '--dense', hint: 'of the layer\u2019s outputs on samples that were held back, mask applied, weights as they were' },
  { key: 'errorAfter', title: 'Error, fitted', kind: 'meter', percent: true, colour: '--error', hint: 'of the layer\u2019s outputs with the weights that were written' },
  { key: 'effect', title: 'Harm alone', kind: 'meter', percent: true, colour: '--error', hint: 'error of the network\u2019s outputs where this layer alone is pruned' },
  { key: 'denseMs', title: 'Dense ms', kind: 'meter', colour: '--dense', scale: 'time', hint: timeHint },
  { key: 'sparseMs', title: prediction ? 'Pruned ms' : 'Sparse ms', kind: 'meter', colour: '--sparse', scale: 'time', hint: timeHint },
  { key: 'ratio', title: 'Ratio', kind: 'number', hint: 'dense time over this time' },
  { key: 'share', title: 'Of the time', kind: 'meter', percent: true, colour: '--sparse' },
  { key: 'gflops', title: 'GFLOP/s', kind: 'number' },
  ...targets.map((target, at) => ({ key: `target ${at}`, title: target.name, kind: 'text', hint: target.title })),
  { key: 'moved', title: 'Reordered', kind: 'short' },
  { key: 'reason', title: report.verb === 'compare' ? 'Note' : 'Why', kind: 'text' },
];
const isEmptyValue = (value) => value === null || value === undefined || value === '' || (Array.isArray(value) && !value.length);
/* A column is shown where some row has a value; kept weights only where something was taken away. */
function isShown(column) {
  const values = rows.map((row) => row[column.key]).filter((value) => !isEmptyValue(value));
  return values.length > 0 && (column.key !== 'kept' || values.some((value) => value < 1 - 1e-9));
}
const columns = COLUMNS.filter(isShown);

function largest(column) {
  if (column.share) return 1;
  const keys = column.scale === 'time' ? ['denseMs', 'sparseMs'] : /^error/.test(column.key) ? ['errorBefore', 'errorAfter'] : [column.key];
  return Math.max(...rows.flatMap((row) => keys.map((key) => row[key] || 0)), Number.MIN_VALUE);
}
for (const column of columns) column.most = largest(column);

function valueText(column, value) {
  if (!isNumber(value)) return '\u2013';
  return column.share || column.percent ? `${short(100 * value)} %` : short(value);
}

function stateOf(row) {
  if (report.verb === 'compare') return row.state === 'sparse' ? ['good', 'same'] : ['warn', 'apart'];
  if (row.state === 'sparse') return ['good', report.verb === 'bench' ? 'sparse kernel' : layerReport.pattern || 'sparse'];
  if (row.eligible && !row.holds) return ['warn', 'dense, could be'];
  return ['plain', 'dense'];
}

function meterCell(column, row) {
  const value = row[column.key];
  if (!isNumber(value)) return make('td', { class: 'meter' }, make('span', { class: 'note' }, '\u2013'));
  const width = Math.max(0, Math.min(100, (100 * value) / column.most));
  const track = make('div', { class: 'meter-track', 'aria-hidden': 'true' },
    make('div', { class: 'meter-fill', style: `width:${width.toFixed(2)}%;background:var(${column.colour})` }));
  const tick = column.tick ? row[column.tick] : null;
  if (isNumber(tick)) track.append(make('div', { class: 'meter-tick', style: `left:calc(${(100 * tick).toFixed(2)}% - 1px)` }));
  const title = isNumber(tick) ? `in the order of the file ${valueText(column, tick)}` : null;
  return make('td', { class: 'meter', title }, make('div', { class: 'meter-box' }, track, make('span', { class: 'meter-text' }, valueText(column, value))));
}

/* A name that may be broken after its separators. */
function breakable(name) {
  return String(name).split(/(?<=[/._:])(?=[^/._:])/).flatMap((part) => [part, make('wbr')]);
}

function cellOf(column, row) {
  const value = row[column.key];
  if (column.kind === 'meter') return meterCell(column, row);
  if (column.kind === 'pill') {
    const [kind, text] = stateOf(row);
    return make('td', null, make('span', { class: `pill ${kind}` }, text));
  }
  if (column.kind === 'number') return make('td', { class: 'number' }, isNumber(value) ? short(value) : '\u2013');
  const text = column.text ? column.text(value) : value;
  return make('td', { class: column.kind }, isEmptyValue(text) ? '' : column.kind === 'name' ? breakable(text) : String(text));
}

/* ---- Sorting and filtering ---- */

const table = { sort: null, down: false, text: '', kind: 'all', all: false };
const KINDS = [
  ['all', 'All', () => true],
  ['sparse', report.verb === 'compare' ? 'Same' : 'Sparse', (row) => row.state === 'sparse'],
  ['dense', report.verb === 'compare' ? 'Apart' : 'Dense', (row) => row.state !== 'sparse'],
  ['could', 'Could be pruned', (row) => row.state !== 'sparse' && row.eligible && !row.holds],
];

function isFound(row) {
  const words = table.text.toLowerCase().split(/\s+/).filter(Boolean);
  const text = [row.name, row.op, row.weight, row.kernel, row.reason, stateOf(row)[1]].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

function compare(column) {
  const of = (row) => (column.order ? column.order(row[column.key]) : row[column.key]);
  return (a, b) => {
    const x = of(a), y = of(b);
    if (isEmptyValue(x) || isEmptyValue(y)) return isEmptyValue(x) - isEmptyValue(y); /* at the end, either way */
    const order = typeof x === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
    return table.down ? -order : order;
  };
}

function shownRows() {
  const kind = KINDS.find(([id]) => id === table.kind)[2];
  const found = rows.filter((row) => kind(row) && isFound(row));
  return table.sort ? found.sort(compare(table.sort)) : found;
}

function fillTable() {
  const found = shownRows(), shown = table.all ? found : found.slice(0, MOST_ROWS);
  const body = byId('layer-table').tBodies[0];
  body.replaceChildren(...shown.map((row, at) => {
    const line = make('tr', { tabindex: at === 0 ? '0' : '-1' }, columns.map((column) => cellOf(column, row)));
    line.row = row;
    return line;
  }));
  byId('layer-count').textContent = found.length === rows.length ? String(rows.length) : `${found.length} of ${rows.length}`;
  const note = byId('layer-note'), left = found.length - shown.length;
  note.replaceChildren();
  if (!found.length) note.append('No layer matches.');
  if (left > 0) {
    const more = make('button', { type: 'button' }, `Show ${plural(left, 'more row')}`);
    more.addEventListener('click', () => { table.all = true; fillTable(); });
    note.append(more);
  }
  for (const cell of byId('layer-table').tHead.rows[0].cells) {
    const on = table.sort && cell.dataset.key === table.sort.key;
    cell.setAttribute('aria-sort', on ? (table.down ? 'descending' : 'ascending') : 'none');
  }
}

/* A first click sorts numbers from the largest on and texts from A on, a second the other way, a third not at all. */
function sortBy(column) {
  const first = column.kind === 'meter' || column.kind === 'number' || column.order;
  if (table.sort !== column) { table.sort = column; table.down = Boolean(first); }
  else if (table.down === Boolean(first)) table.down = !first;
  else table.sort = null;
  fillTable();
}

function headOf(column) {
  const button = make('button', { type: 'button', title: column.hint }, column.title);
  button.addEventListener('click', () => sortBy(column));
  return make('th', { scope: 'col', class: column.kind === 'number' ? 'number' : null, 'data-key': column.key }, button);
}

function chipOf([id, title, test]) {
  const n = rows.filter(test).length;
  if (!n && id !== 'all') return null;
  const button = make('button', { type: 'button', 'aria-pressed': String(id === table.kind) }, `${title} ${n}`);
  button.addEventListener('click', () => {
    table.kind = id;
    for (const other of byId('chips').children) other.setAttribute('aria-pressed', String(other === button));
    fillTable();
  });
  return button;
}

function chooseRow(line) {
  for (const other of byId('layer-table').tBodies[0].rows) other.setAttribute('aria-selected', String(other === line));
  line.tabIndex = 0;
  showNode(line.row.name, false);
}

function onTableKey(event) {
  const line = event.target.closest('tbody tr');
  if (!line) return;
  const next = event.key === 'ArrowDown' ? line.nextElementSibling : event.key === 'ArrowUp' ? line.previousElementSibling : null;
  if (next) {
    event.preventDefault();
    line.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else if (event.key === 'Enter') {
    chooseRow(line);
    showNode(line.row.name, true);
  }
}

/* The table with only these layers, in view. */
function showLayers(text) {
  table.text = text;
  byId('find').value = text;
  fillTable();
  byId('layers').scrollIntoView();
}

function showTable() {
  if (!rows.length) return;
  byId('layers').hidden = false;
  byId('layer-table').tHead.append(make('tr', null, columns.map(headOf)));
  byId('chips').append(...KINDS.map(chipOf).filter(Boolean));
  byId('find').addEventListener('input', (event) => { table.text = event.target.value; fillTable(); });
  byId('layer-table').addEventListener('keydown', onTableKey);
  byId('layer-table').addEventListener('click', (event) => {
    const line = event.target.closest('tbody tr');
    if (line) chooseRow(line);
  });
  fillTable();
}

/* ---- What stays dense, and why ---- */

function showReasons() {
  const groups = new Map();
  const masks = report.masks ? report.masks.dense : [];
  const list = masks.length ? masks : rows.filter((row) => row.state !== 'sparse' && row.reason);
  for (const row of list) {
    const reason = row.reason || 'no reason was given';
    if (!groups.has(reason)) groups.set(reason, []);
    groups.get(reason).push(row.name);
  }
  if (!groups.size || report.verb === 'compare') return;
  byId('dense').hidden = false;
  const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
  byId('reasons').append(...sorted.map(([reason, names]) => make('details', { open: sorted.length === 1 && names.length < 12 },
    make('summary', null, reason, make('span', { class: 'count' }, plural(names.length, 'layer'))),
    make('ul', null, names.map((name) => make('li', { class: 'mono' }, name))))));
}
