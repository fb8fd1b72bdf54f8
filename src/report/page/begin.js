'use strict';
/* SPDX-License-Identifier: Apache-2.0
 * What all parts of the page use: the data, elements, numbers as text. Names of a model are set as text
 * only, never as markup. */
function readData(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}
const report = readData('data-report') || {};
const about = readData('data-about') || {};
const graphData = readData('data-graph');
const log = readData('data-log') || [];
/* The report that has the layers: the verb's own, or the one beside it. */
const ownLayers = Array.isArray(report.layers) && report.layers.some((l) => 'weight' in l);
const layerReport = ownLayers ? report : readData('data-layers');

const byId = (id) => document.getElementById(id);

/* Makes an element with attributes and children; texts become text nodes. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === 'class') element.className = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';
function makeSvg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const plural = (n, word) => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

/* A number with about three digits that count. */
function short(value) {
  if (!isNumber(value)) return '\u2013';
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= 1000) return value.toLocaleString('en', { maximumFractionDigits: 0 });
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  if (size >= 0.001) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}

const milliseconds = (value) => (isNumber(value) ? `${short(value)} ms` : '\u2013');
const baseName = (path) => String(path || '').split('/').pop();
