/* The network: the drawing that graphviz laid out, coloured by role or by a figure of the layers. Without a drawing it is a
 * list of the nodes. */
const network = { nodes: [], byBox: new Map(), byName: new Map(), zoom: 0, width: 0, chosen: null };

const ROLES = {
  layer: ['layer', 'a layer that is, or may be, permuted or pruned'],
  passes: ['passes', 'passes channel orders through'],
  follows: ['follows', 'has parameters that follow the order'],
  blocks: ['blocks', 'blocks orders, or a layer that is not pruned'],
  constant: ['constant', 'constants and what computes them'],
};

/* The figures that nodes can be coloured by: those of the table that are numbers. */
function measures() {
  return columns.filter((column) => column.kind === 'meter' || column.key === 'ratio');
}

/* The value of a box: the mean over the layers that it stands for; null: no layer of it has one. */
function valueOfBox(node, key) {
  const values = node.names.map((name) => (rowsByName.get(name) || {})[key]).filter(isNumber);
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function colourByRole() {
  const seen = new Set();
  for (const node of network.nodes) {
    if (!node.element) continue;
    seen.add(node.role);
    node.element.classList.remove('pale');
    node.element.dataset.role = node.role;
    node.element.style.setProperty('--fill', `var(--${node.role}-fill)`);
    node.element.style.setProperty('--edge', `var(--${node.role}-line)`);
  }
  const shown = Object.entries(ROLES).filter(([role]) => seen.has(role));
  byId('legend').replaceChildren(...shown.map(([role, [word, meaning]]) => make('span', { title: meaning },
    make('i', { class: 'swatch', style: `background:var(--${role}-fill);border-color:var(--${role}-line)` }), `${word}: ${meaning}`)));
}

function colourByMeasure(column) {
  const values = network.nodes.map((node) => (node.element ? valueOfBox(node, column.key) : null));
  const known = values.filter(isNumber);
  const low = Math.min(...known, Infinity), high = Math.max(...known, -Infinity), range = high - low || 1;
  network.nodes.forEach((node, at) => {
    if (!node.element) return;
    const value = values[at];
    node.element.classList.toggle('pale', !isNumber(value));
    if (!isNumber(value)) return;
    const share = (100 * (value - low)) / range;
    node.element.style.setProperty('--fill', `color-mix(in oklab, var(--scale-high) ${share.toFixed(1)}%, var(--scale-low))`);
    node.element.style.setProperty('--edge', 'var(--soft)');
  });
  byId('legend').replaceChildren(make('span', null, valueText(column, low), make('i', { class: 'ramp' }), valueText(column, high)),
    make('span', null, `${column.title}; a folded block has the mean of its layers`));
}

function colourNodes() {
  const column = measures().find((m) => m.key === byId('colour').value);
  if (column) colourByMeasure(column);
  else colourByRole();
}

/* ---- Finding and choosing ---- */

function findNodes(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let first = null;
  for (const node of network.nodes) {
    const found = words.every((word) => `${node.names.join(' ')} ${node.lines.join(' ')} ${node.op}`.toLowerCase().includes(word));
    if (node.element) node.element.classList.toggle('dim', words.length > 0 && !found);
    if (found && words.length && node.element && !first) first = node;
  }
  if (first) scrollToNode(first);
}

function scrollToNode(node) {
  const canvas = byId('canvas'), box = node.element.getBoundingClientRect(), frame = canvas.getBoundingClientRect();
  canvas.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
  canvas.scrollLeft += box.left - frame.left - (frame.width - box.width) / 2;
}

function detailRows(row) {
  const lines = [];
  for (const column of columns) {
    const value = row[column.key];
    if (['name', 'op', 'reason'].includes(column.key) || isEmptyValue(value)) continue;
    const text = column.kind === 'pill' ? stateOf(row)[1] : column.text ? column.text(value) : isNumber(value) ? valueText(column, value) : value;
    lines.push(make('dt', null, column.title), make('dd', null, text));
  }
  return lines;
}

function showDetail(node) {
  const detail = byId('detail'), row = node.names.map((name) => rowsByName.get(name)).find(Boolean);
  const parts = [make('h3', null, node.op, node.names.length > 1 ? ` \u00d7${node.names.length}` : '')];
  if (node.names.length === 1) parts.push(make('p', { class: 'mono' }, node.names[0]));
  else parts.push(make('details', { open: node.names.length < 9 }, make('summary', null, plural(node.names.length, 'node')), make('ul', { style: 'columns:auto' }, node.names.map((name) => make('li', { class: 'mono' }, name)))));
  if (row && node.names.length === 1) parts.push(make('dl', null, detailRows(row)));
  if (row && node.names.length > 1) {
    const figures = measures().map((column) => [column, valueOfBox(node, column.key)]).filter(([, value]) => isNumber(value));
    parts.push(make('dl', null, figures.flatMap(([column, value]) => [make('dt', null, `${column.title}, mean`), make('dd', null, valueText(column, value))])));
  }
  if (node.lines.length) parts.push(make('details', null, make('summary', null, `${plural(node.lines.length, 'more node')} in this box`), make('ul', { style: 'columns:auto' }, node.lines.map((name) => make('li', { class: 'mono' }, name)))));
  const reason = (row && row.reason) || node.reason;
  if (reason) parts.push(make('p', null, reason));
  if (row) {
    const go = make('button', { type: 'button' }, 'Show in the table');
    go.addEventListener('click', () => showLayers(node.names[0]));
    parts.push(go);
  }
  detail.replaceChildren(...parts);
}

function chooseNode(node) {
  if (network.chosen && network.chosen.element) network.chosen.element.classList.remove('chosen');
  network.chosen = node;
  if (node.element) node.element.classList.add('chosen');
  showDetail(node);
}

/* Chooses the node of this name, where the network is shown, and brings it into view. */
function showNode(name, goThere) {
  const node = network.byName.get(name);
  if (!node) return;
  chooseNode(node);
  if (!node.element) return;
  scrollToNode(node);
  if (goThere) {
    byId('network').scrollIntoView();
    node.element.focus({ preventScroll: true });
  }
}

/* ---- The drawing ---- */

function setZoom(zoom) {
  const svg = byId('canvas').querySelector('svg');
  if (!svg) return;
  network.zoom = Math.max(0.1, Math.min(4, zoom));
  svg.style.width = `${(network.width * network.zoom).toFixed(0)}px`;
}

function fitZoom() {
  const canvas = byId('canvas'), inside = canvas.clientWidth - 24;
  setZoom(Math.min(1.1, Math.max(0.6, inside / network.width)));
}

function readNodes() {
  for (const node of graphData ? graphData.nodes : []) {
    const known = network.byBox.get(node.box);
    if (known) (node.line ? known.lines : known.names).push(node.name);
    const entry = known || { box: node.box, names: [node.name], lines: [], op: node.op, role: node.role, reason: node.reason, element: null };
    if (!known) {
      network.nodes.push(entry);
      network.byBox.set(node.box, entry);
    }
    if (node.line && !entry.op.includes(node.op)) entry.op += `, ${node.op}`;
    if (!network.byName.has(node.name)) network.byName.set(node.name, entry);
  }
}

function onNodeKey(event) {
  const node = network.byBox.get(event.currentTarget.id);
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    chooseNode(node);
  }
}

function placeDrawing() {
  const svg = document.importNode(byId('drawing').content, true).querySelector('svg');
  network.width = parseFloat(svg.getAttribute('width')) * (4 / 3); /* points to pixels */
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  svg.setAttribute('role', 'group');
  svg.setAttribute('aria-label', 'The network from its inputs to its outputs');
  for (const node of network.nodes) {
    node.element = svg.getElementById(node.box);
    if (!node.element) continue;
    const title = node.element.querySelector('title') || node.element.appendChild(makeSvg('title'));
    title.textContent = `${node.op} ${node.names[0]}${node.names.length > 1 ? ` and ${plural(node.names.length - 1, 'other')}` : ''}`;
    node.element.setAttribute('tabindex', '-1');
    node.element.addEventListener('click', () => chooseNode(node));
    node.element.addEventListener('keydown', onNodeKey);
  }
  for (const title of svg.querySelectorAll('title')) if (/^(node|constant|input|output|network)/.test(title.textContent)) title.remove();
  byId('canvas').append(svg);
  fitZoom();
}

function placeList() {
  const list = make('ul', null, network.nodes.map((node) => {
    const button = make('button', { type: 'button' }, `${node.op} ${node.names[0]}`);
    button.addEventListener('click', () => chooseNode(node));
    return make('li', null, button);
  }));
  byId('canvas').append(make('p', { class: 'note' }, `There is no drawing: ${about.no_drawing || 'none was made'}. These are the nodes.`), list);
  byId('colour').closest('label').hidden = byId('legend').hidden = true;
  document.querySelector('.zoom').hidden = true;
}

/* The arrow keys go from node to node in the drawing's order. */
function onCanvasKey(event) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  const drawn = network.nodes.filter((node) => node.element);
  if (!step || !drawn.length || !event.target.closest('#canvas')) return;
  const next = drawn[drawn.indexOf(network.chosen) + step] || (network.chosen ? null : drawn[0]);
  event.preventDefault();
  if (!next) return;
  chooseNode(next);
  scrollToNode(next);
}

function showNetwork() {
  readNodes();
  if (!network.nodes.length) return;
  byId('network').hidden = false;
  byId('node-count').textContent = plural(graphData.nodes.length, 'node');
  byId('colour').append(make('option', { value: '' }, 'role'), ...measures().map((column) => make('option', { value: column.key }, column.title.toLowerCase())));
  if (report.verb === 'compare' && measures().some((m) => m.key === 'gap')) byId('colour').value = 'gap';
  byId('detail').append(make('p', { style: 'margin:0' }, 'Choose a node to see its figures.'));
  if (byId('drawing')) placeDrawing();
  else placeList();
  byId('colour').addEventListener('change', colourNodes);
  byId('node-find').addEventListener('input', (event) => findNodes(event.target.value));
  byId('smaller').addEventListener('click', () => setZoom(network.zoom / 1.25));
  byId('larger').addEventListener('click', () => setZoom(network.zoom * 1.25));
  byId('fit').addEventListener('click', fitZoom);
  byId('canvas').addEventListener('keydown', onCanvasKey);
  colourNodes();
}
