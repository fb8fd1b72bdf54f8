/* The page as a whole: its parts in their order, the theme, the keys. */
const THEMES = ['auto', 'light', 'dark'];
const wide = { theme: 'auto' };

function applyTheme() {
  const system = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.documentElement.dataset.theme = wide.theme === 'auto' ? system : wide.theme;
  byId('theme').textContent = { auto: 'Auto', light: 'Light', dark: 'Dark' }[wide.theme];
}

function nextTheme() {
  wide.theme = THEMES[(THEMES.indexOf(wide.theme) + 1) % THEMES.length];
  applyTheme();
}

function showWarnings() {
  if (!about.warnings || !about.warnings.length) return;
  byId('warnings').hidden = false;
  byId('warning-list').append(...about.warnings.map((text) => make('li', null, text)));
}

function showCommand() {
  if (!about.command) return;
  byId('command').hidden = false;
  byId('command-text').textContent = about.command;
  byId('copy').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(about.command);
      byId('copy').textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(byId('command-text')); /* no right to the clipboard: it can be copied by hand */
    }
  });
}

function showReport() {
  const text = JSON.stringify(report, null, 2);
  byId('json').closest('details').addEventListener('toggle', () => { byId('json').textContent = text; }, { once: true });
  byId('save').addEventListener('click', () => {
    const link = make('a', { href: URL.createObjectURL(new Blob([`${text}\n`], { type: 'application/json' })), download: 'report.json' });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  byId('footer').textContent = `Lacuna ${about.lacuna || ''}`;
}

function showNav() {
  for (const section of document.querySelectorAll('main > section[id]')) {
    if (section.hidden) continue;
    const title = section.querySelector('h2').firstChild.textContent.trim();
    byId('nav').append(make('a', { href: `#${section.id}` }, title === 'What stays dense, and why' ? 'Dense' : title));
  }
}

const isTyping = (element) => element.matches && element.matches('input, select, textarea');

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape' && isTyping(event.target)) {
    event.target.value = '';
    event.target.dispatchEvent(new Event('input'));
    event.target.blur();
    return;
  }
  if (isTyping(event.target)) return;
  const focus = (id) => { event.preventDefault(); byId(id).focus(); byId(id).scrollIntoView({ block: 'center' }); };
  if (event.key === '/' && !byId('layers').hidden) focus('find');
  else if (event.key === 'g' && !byId('network').hidden) focus('node-find');
  else if (event.key === 't') nextTheme();
  else if (event.key === '?') byId('help').showModal();
}

function showPage() {
  applyTheme();
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
  byId('theme').addEventListener('click', nextTheme);
  byId('help-open').addEventListener('click', () => byId('help').showModal());
  document.addEventListener('keydown', onKey);
  showVerdict();
  showCommand();
  showWarnings();
  showTable();
  showNetwork();
  showCurves();
  showReasons();
  showReport();
  showNav();
  document.documentElement.dataset.ready = 'yes';
}

showPage();
