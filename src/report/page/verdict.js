/* The verdict in a sentence, and the figures next to it. Each verb's function returns
 * { state: good | warn | bad | plain, verdict, facts: [text], pairs: [[what, before, after, change, is it better]] }. */
function sumOf(rows, key) {
  return rows.reduce((sum, row) => sum + (isNumber(row[key]) ? row[key] : 0), 0);
}

function change(before, after, text) {
  if (!isNumber(before) || !isNumber(after)) return '';
  const difference = after - before;
  return (difference > 0 ? '+' : difference < 0 ? '\u2212' : '\u00b1') + text(Math.abs(difference));
}

/* A row of the table of before and after; better: 1 where more is better, -1 where less is, 0 where neither is. */
function pair(what, before, after, text, better) {
  const difference = isNumber(before) && isNumber(after) ? after - before : 0;
  const good = difference === 0 || !better ? null : difference * better > 0;
  const show = (value) => (isNumber(value) ? text(value) : '\u2013');
  return { what, before: show(before), after: show(after), change: change(before, after, text), good };
}

const points = (value) => `${value.toFixed(2)} %`;

function keptFact(layers) {
  const pruned = layers.filter((l) => l.pruned);
  const total = sumOf(pruned, 'total');
  if (!total) return null;
  const kept = sumOf(pruned, 'kept') / total, identity = sumOf(pruned, 'kept_identity') / total;
  return `${sumOf(layers, 'zeros').toLocaleString('en')} of ${sumOf(layers, 'elements').toLocaleString('en')} weights are zero. The pruned layers keep ${percent(kept)} of their weights' magnitude; in the order of the file it would be ${percent(identity)}.`;
}

function verificationText(verification, reordered) {
  switch (verification && verification.state) {
    case 'verified': return 'reordering alone leaves all outputs the same';
    case 'partial': return 'the reordering was verified in part';
    case 'not verified': return 'the reordering was not verified';
    default: return reordered ? 'the reordering was not compared' : null;
  }
}

function calibrationFacts(c) {
  if (!c) return [];
  const facts = [];
  if (c.data) facts.push(`Fitted on ${c.data}.`);
  if (isNumber(c.outputs_error)) facts.push(`Error of the outputs on what was held back: ${percent(c.outputs_error)}.`);
  if (isNumber(c.agreement)) facts.push(`${c.agreement.toFixed(1)} % of ${plural(c.answers, 'answer')} stay the same.`);
  if (c.synthetic) facts.push('These images were drawn by the program: they say little of how the network does on real ones.');
  if (c.reason) facts.push(c.reason);
  return facts;
}

/* Before and after of prune: from figures that the report has of both. */
function prunePairs(r) {
  const pairs = [], layers = r.layers || [], c = r.calibration;
  const pruned = layers.filter((l) => l.pruned), total = sumOf(pruned, 'total');
  if (total) pairs.push(pair('Magnitude kept, order of the file and order written', 100 * sumOf(pruned, 'kept_identity') / total, 100 * sumOf(pruned, 'kept') / total, points, c ? 0 : 1));
  const p = r.prediction;
  if (p && p.costs_known && p.dense_seconds > 0 && p.pruned_seconds > 0)
    pairs.push(pair(`Predicted time of a run with ${plural(p.threads, 'thread')}`, 1000 * p.dense_seconds, 1000 * p.pruned_seconds, milliseconds, -1));
  if (!c) return pairs;
  if (c.labelled > 0) pairs.push(pair(`Top-1 on ${plural(c.labelled, 'labelled sample')}`, c.top1_dense, c.top1_pruned, points, 1));
  const solved = layers.filter((l) => l.calibrated);
  if (solved.length) {
    const mean = (key) => 100 * sumOf(solved, key) / solved.length;
    pairs.push(pair('Mean error of layers\u2019 outputs, masked and fitted', mean('error_before'), mean('error_after'), points, -1));
  }
  if (isNumber(c.error_magnitude) && isNumber(c.outputs_error))
    pairs.push(pair('Error of the outputs, by magnitude and calibrated', 100 * c.error_magnitude, 100 * c.outputs_error, points, -1));
  if (isNumber(c.error_refined) && isNumber(c.error_fitted))
    pairs.push(pair('Error of the outputs, fitted and refined', 100 * c.error_fitted, 100 * c.error_refined, points, -1));
  return pairs;
}

function pruneVerdict(r) {
  const s = r.summary || {}, v = verificationText(r.verification, s.reordered);
  const doubtful = s.reordered > 0 && (r.verification || {}).state !== 'verified';
  const state = s.pruned === 0 ? 'bad' : doubtful || s.pruned < s.eligible ? 'warn' : 'good';
  const facts = [];
  if (s.pruned < s.eligible) facts.push(`${plural(s.eligible - s.pruned, 'layer')} that could be pruned ${s.eligible - s.pruned === 1 ? 'stays' : 'stay'} dense.`);
  if (s.reordered) facts.push(`${plural(s.reordered, 'layer')} reordered, in ${plural(s.groups, 'group')} of channels.`);
  if (r.verification && isNumber(r.verification.max_abs_error))
    facts.push(`Largest difference of the outputs by reordering alone: ${short(r.verification.max_abs_error)}, where the largest output is ${short(r.verification.max_abs_output)}.`);
  if (r.uncalibrated) facts.push(`By magnitude: ${r.uncalibrated}.`);
  facts.push(keptFact(r.layers || []), ...calibrationFacts(r.calibration), ...targetFacts(r));
  return {
    state, facts, pairs: prunePairs(r),
    verdict: `${s.pruned} of ${plural(s.layers || 0, 'layer')} ${s.pruned === 1 ? 'holds' : 'hold'} ${r.pattern}${v ? `, and ${v}` : ''}.`,
  };
}

function targetFacts(r) {
  return (r.targets || []).map((t) => `${t.title || t.name}: ${t.taken} taken as sparse, ${t.refused} refused, ${t.not_stated} not stated.`);
}

function targetVerdict(r) {
  return `${r.targets.map((t) => {
    const pruned = t.taken + t.refused + t.not_stated;
    return `${t.name} takes ${t.taken} of ${plural(pruned, 'pruned layer')} as sparse`;
  }).join(', ')}.`;
}

function checkVerdict(r) {
  const layers = r.layers || [], eligible = layers.filter((l) => l.eligible);
  const missing = eligible.filter((l) => !l.holds_pattern);
  const computed = layers.filter((l) => l.storable && !l.holds_pattern).length;
  const refused = (r.targets || []).some((t) => t.refused > 0);
  const facts = [];
  if (missing.length) facts.push(`The first that does not is ${missing[0].name}.`);
  if (computed) facts.push(`${plural(computed, 'weight')} computed from stored tensors ${computed === 1 ? 'is' : 'are'} not among these.`);
  const v = r.verification;
  if (v && v.state) facts.push(`Against the original: ${v.state}${v.reason ? `, ${v.reason}` : ''}.`);
  facts.push(...targetFacts(r));
  const n = eligible.length, held = n - missing.length;
  const verdict = r.targets && r.targets.length ? targetVerdict(r) : n === 0 ? `No layer of this network should hold ${r.pattern}.`
    : missing.length === 0 ? `All ${plural(n, 'layer')} that should hold ${r.pattern} do.`
    : `${held} of ${plural(n, 'layer')} that should hold ${r.pattern} ${held === 1 ? 'does' : 'do'}.`;
  return { state: missing.length || refused ? 'bad' : n === 0 && !(r.targets || []).length ? 'warn' : 'good', verdict, facts, pairs: [] };
}

function benchVerdict(r) {
  const dense = (r.dense_ms || {}).median, sparse = (r.sparse_ms || {}).median;
  const both = isNumber(dense) && isNumber(sparse);
  const per = r.batch === 1 ? 'a run' : `a batch of ${r.batch}`;
  const ratio = both ? dense / sparse : 0;
  const verdict = !both ? `${milliseconds(dense)} for ${per}, by dense kernels.`
    : ratio >= 1 ? `Sparse kernels run it ${ratio.toFixed(2)} times as fast: ${milliseconds(sparse)} for ${per}, dense ${milliseconds(dense)}.`
    : `Sparse kernels are slower here: ${milliseconds(sparse)} for ${per}, dense ${milliseconds(dense)}.`;
  const facts = [`${plural(r.threads || 0, 'thread')}, ${r.dtype}, ${plural(r.runs || 0, 'run')}; ${short(r.images_per_second)} images a second.`];
  facts.push(`${plural(r.layers_sparse || 0, 'layer')} by sparse kernels; ${r.layers_holding_pattern || 0} ${r.layers_holding_pattern === 1 ? 'holds' : 'hold'} ${r.pattern}.`);
  if (r.exact_reason) facts.push(r.exact_reason);
  if (isNumber(r.peak_gflops)) facts.push(`At best this processor does ${short(r.peak_gflops)} GFLOP/s (${r.peak_kernel}) and reads ${short(r.read_gbytes_per_second)} GB/s.`);
  const pairs = both ? [pair('Median time', dense, sparse, milliseconds, -1),
    pair('Fastest time', r.dense_ms.min, r.sparse_ms.min, milliseconds, -1)] : [];
  const plan = r.dense_plan;
  if (both && plan) {
    const mega = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
    pairs.push(pair('Weights in memory', plan.weight_bytes, r.weight_bytes, mega, -1), pair('Arena', plan.arena_bytes, r.arena_bytes, mega, -1));
  }
  return { state: !both ? 'plain' : ratio >= 1 ? 'good' : 'warn', verdict, facts, pairs, names: ['Dense', 'Sparse'] };
}

function evalVerdict(r) {
  return {
    state: 'plain', pairs: [],
    verdict: `Top-1 is ${points(r.top1)} on ${plural(r.images, 'image')}.`,
    facts: [`Top-5 is ${points(r.top5)}, the loss ${short(r.loss)}.`, isNumber(r.images_per_second) ? `${short(r.images_per_second)} images a second.` : null],
  };
}

function trainVerdict(r) {
  const best = r.best, last = r.final, masks = r.masks;
  const first = log.find((line) => line.eval);
  const facts = [], pairs = [];
  const evaluated = last || best;
  const ends = { interrupted: 'It was interrupted', threshold: 'The threshold was reached', evaluated: 'It was evaluated, not trained', steps: 'It ended' };
  facts.push(`${ends[r.ended] || 'It ended'} at step ${(r.steps || 0).toLocaleString('en')} of ${(r.planned_steps || 0).toLocaleString('en')}.`);
  if (best && last && best.step !== last.step) facts.push(`The best evaluation was ${points(best.top1)}, at step ${best.step.toLocaleString('en')}.`);
  if (masks) facts.push(`${plural(masks.kept.length + masks.pruned.length, 'layer')} ${masks.pattern}, ${masks.dense.length} dense.`);
  if (isNumber(r.images_per_second)) facts.push(`${short(r.images_per_second)} images a second, ${r.seconds < 3600 ? plural(Math.round(r.seconds), 'second') : `${(r.seconds / 3600).toFixed(2)} hours`}; recipe ${r.recipe || '\u2013'}, batch ${r.batch}, ${r.dtype}.`);
  if (first && last && first.step < last.step) {
    pairs.push(pair('Top-1', first.top1, last.top1, points, 1), pair('Top-5', first.top5, last.top5, points, 1), pair('Loss', first.loss, last.loss, short, -1));
  }
  const verdict = evaluated ? `Top-1 is ${points(evaluated.top1)} after ${plural(evaluated.step || 0, 'step')}.`
    : `${plural(r.steps || 0, 'step')} were trained, and not evaluated.`;
  return { state: r.ended === 'interrupted' ? 'warn' : 'good', verdict, facts, pairs, names: [first ? `Step ${first.step}` : 'Before', last ? `Step ${last.step}` : 'After'] };
}

function compareVerdict(r) {
  const s = r.summary, outputs = r.layers.filter((l) => l.output);
  const facts = [`${plural(s.compared, 'value')} compared on ${r.inputs} inputs: ${s.by_name} matched by name, ${s.by_structure} by operator and shape.`];
  if (s.reordered) facts.push(`${plural(s.reordered, 'value')} ${s.reordered === 1 ? 'has its' : 'have their'} channels in another order.`);
  if (s.apart) facts.push(`The largest error is ${isNumber(s.worst_error) ? percent(s.worst_error, 3) : 'unknown'}, at ${s.worst}.`);
  for (const l of outputs) facts.push(`Output of ${l.name}: ${isNumber(l.error) ? percent(l.error, 3) : 'not compared'}.`);
  const verdict = s.apart ? `They part at ${s.first_apart}: ${s.apart} of ${plural(s.compared, 'value')} ${s.apart === 1 ? 'is' : 'are'} apart.`
    : `All ${plural(s.compared, 'value')} agree within ${percent(r.tolerance, 3)}.`;
  return { state: s.apart ? 'warn' : 'good', verdict, facts, pairs: [] };
}

const VERDICTS = { compare: compareVerdict, prune: pruneVerdict, permute: pruneVerdict, check: checkVerdict, bench: benchVerdict, eval: evalVerdict, train: trainVerdict, finetune: trainVerdict };

function showVerdict() {
  const of = VERDICTS[report.verb];
  const said = of ? of(report) : { state: 'plain', verdict: `The report of ${report.verb || 'Lacuna'}.`, facts: [], pairs: [] };
  const model = report.model || report.arch;
  byId('where').textContent = [`lacuna ${report.verb || ''}`, model ? baseName(model) : null, report.other ? `and ${baseName(report.other)}` : null, report.data ? `on ${report.data}` : null].filter(Boolean).join(' \u00b7 ');
  byId('verdict').textContent = said.verdict;
  document.querySelector('.verdict').dataset.state = said.state;
  byId('facts').append(...said.facts.filter(Boolean).map((text) => make('li', null, text)));
  showPairs(said.pairs || [], said.names || ['Before', 'After']);
}

function showPairs(pairs, names) {
  if (!pairs.length) return;
  byId('compared').hidden = false;
  const head = ['', ...names, 'Change'].map((text, at) => make('th', { class: at ? 'number' : null, scope: 'col' }, text));
  byId('pairs').append(make('thead', null, make('tr', null, head)), make('tbody', null, pairs.map((p) => make('tr', null,
    make('th', { scope: 'row', style: 'white-space:normal' }, p.what), make('td', { class: 'number' }, p.before), make('td', { class: 'number' }, p.after),
    make('td', { class: `number ${p.good === null ? '' : p.good ? 'good' : 'bad'}` }, p.change)))));
}
