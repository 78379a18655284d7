// Plays a recording that stands in the page itself, in segments.

const $ = (id) => document.getElementById(id);
const entries = [...document.querySelectorAll('script.segment')]
  .flatMap((segment) => JSON.parse(segment.textContent).entries)
  .sort((one, other) => one.at - other.at);
const pictures = entries.filter(({ kind }) => kind === 'picture');
const pages = entries.filter(({ kind }) => kind === 'page');
const begin = entries[0]?.at ?? 0;
const end = entries.at(-1)?.at ?? 0;
const kinds = [...new Set(entries.map(({ kind }) => kind))].filter((kind) => kind !== 'picture' && kind !== 'page');

let now = begin;
let playing = false;
let last;

/** The last one that was before a time. */
function before(list, at) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return list[low - 1];
}

const clock = (at) => {
  const seconds = Math.max(0, (at - begin) / 1000);
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${(seconds % 60).toFixed(1).padStart(4, '0')}`;
};

function textOf(entry) {
  if (entry.kind === 'navigation') return entry.url;
  if (entry.kind === 'request') return `${entry.method} ${entry.url}`;
  if (entry.kind === 'response') return entry.failed ?? `status ${entry.status}`;
  if (entry.kind === 'console') return `${entry.level}: ${entry.text}`;
  if (entry.kind === 'dialog') return `${entry.type}: ${entry.text}`;
  return `${entry.method} ${entry.what}`;
}

let shown;
function show(at) {
  now = Math.min(Math.max(at, begin), end);
  // Before the first picture there is none: the first one stands for it.
  const picture = before(pictures, now) ?? pictures[0];
  if (picture && picture !== shown) $('picture').src = `data:image/jpeg;base64,${picture.jpeg}`;
  shown = picture;
  const page = before(pages, now);
  $('address').textContent = page ? `${page.title} ${page.url}` : '';
  $('at').value = String(now - begin);
  $('time').textContent = `${clock(now)} of ${clock(end)}`;
  const current = before(listed, now);
  for (const one of listed) one.button.setAttribute('aria-current', String(one === current));
}

let listed = [];
function list() {
  const wanted = new Set([...document.querySelectorAll('#kinds input:checked')].map(({ value }) => value));
  listed = entries
    .filter(({ kind }) => wanted.has(kind))
    .map((entry) => {
      const button = document.createElement('button');
      const kind = document.createElement('span');
      kind.className = 'kind';
      kind.textContent = `${clock(entry.at)} ${entry.kind} `;
      button.append(kind, textOf(entry));
      button.onclick = () => show(entry.at);
      return { at: entry.at, button };
    });
  $('list').replaceChildren(
    ...listed.map(({ button }) => {
      const item = document.createElement('li');
      item.append(button);
      return item;
    }),
  );
}

function turn(time) {
  if (!playing) return;
  show(now + (time - (last ?? time)) * Number($('speed').value));
  last = time;
  if (now >= end) play(false);
  else requestAnimationFrame(turn);
}

function play(on) {
  playing = on;
  last = undefined;
  $('play').textContent = on ? 'Pause' : 'Play';
  if (on && now >= end) now = begin;
  if (on) requestAnimationFrame(turn);
}

for (const kind of kinds) {
  const label = document.createElement('label');
  const box = document.createElement('input');
  box.type = 'checkbox';
  box.value = kind;
  box.checked = kind !== 'response' && kind !== 'request';
  box.onchange = () => {
    list();
    show(now);
  };
  label.append(box, ` ${kind}`);
  $('kinds').append(label);
}
$('at').max = String(end - begin);
$('at').oninput = () => show(begin + Number($('at').value));
$('play').onclick = () => play(!playing);
list();
show(begin);
