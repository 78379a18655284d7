// The page of the live view: shows the pictures of a session, and says what a person does. Everything that comes from the session is shown
// as text or as a picture.

const { browser, session, ticket, mode } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const $ = (id) => document.getElementById(id);
const screen = $('screen');
const keys = $('keys');
const picture = screen.getContext('2d');

const AGAIN_MS = [250, 500, 1000, 2000, 5000];
/** Close codes of the server. */
const OVER = 4004;
const BUTTONS = ['left', 'middle', 'right'];

let socket;
/** How often in a row there was no connection. */
let failures = 0;
let over = false;
let person = false;
let readOnly = mode === 'read-only';
/** The page that is watched, in CSS pixels. */
let size = { width: screen.width, height: screen.height };

const address = `${location.protocol.replace('http', 'ws')}//${location.host}/browser-streams/${browser}/sessions/${session}/live-view`;
const say = (message) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
};
const mayAct = () => person && !readOnly;

if (new URLSearchParams(location.search).has('embed')) document.body.classList.add('framed');
if (!ticket) cover('This address is not whole. Open the presigned address of the live view.');
else connect();

function connect() {
  socket = new WebSocket(address, ['agentplatform.live-view', ticket]);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => {
    failures = 0;
    cover('');
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === 'string') hear(JSON.parse(data));
    else show(data).catch(() => problem('A picture could not be shown.'));
  };
  socket.onclose = ({ code, reason }) => {
    person = false;
    controls();
    if (code === OVER) {
      over = true;
      return cover('The session has ended.');
    }
    const wait = AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)];
    failures += 1;
    cover(
      failures > 3
        ? 'No connection. The session may have ended, or this address no longer counts. Trying again…'
        : `Connecting again… ${reason}`,
    );
    setTimeout(connect, wait);
  };
}

/** The last picture stays; what goes on is written over it. */
function cover(text) {
  $('cover').textContent = text;
  $('cover').hidden = text === '';
}

async function show(data) {
  const length = new DataView(data).getUint32(0);
  const { width, height } = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  try {
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(data, 4 + length)], { type: 'image/jpeg' }));
    if (screen.width !== bitmap.width || screen.height !== bitmap.height) {
      screen.width = bitmap.width;
      screen.height = bitmap.height;
    }
    picture.drawImage(bitmap, 0, 0);
    bitmap.close();
    size = { width: width || screen.width, height: height || screen.height };
    screen.dataset.shown = String(Number(screen.dataset.shown ?? 0) + 1);
  } finally {
    say({ type: 'seen' });
  }
}

function hear(message) {
  if (message.type === 'tabs') tabs(message);
  else if (message.type === 'control') {
    person = message.person;
    readOnly = message.readOnly;
    controls();
  } else if (message.type === 'problem') problem(message.text);
  else if (message.type === 'copied') copied(message.text).catch(() => undefined);
  else if (message.type === 'shared') shared(message.fragment);
  else if (message.type === 'dialog') dialog(message);
  else if (message.type === 'files') files(message);
}

function controls() {
  const connected = socket?.readyState === WebSocket.OPEN;
  document.body.classList.toggle('driven', mayAct());
  for (const part of document.querySelectorAll('[data-say], #address, .tab button')) part.disabled = !mayAct();
  $('control').hidden = readOnly;
  $('share').hidden = readOnly;
  $('control').disabled = !connected;
  $('control').textContent = person ? 'Give back control' : 'Take control';
  $('state').textContent = over
    ? 'Ended'
    : readOnly
      ? `Read-only. ${person ? 'A person has control.' : 'A program drives the session.'}`
      : person
        ? 'You have control. Programs are cut off.'
        : 'A program drives the session. You are watching.';
}

function problem(text) {
  $('problem').textContent = text;
}

function tabs({ tabs: all, front }) {
  const made = all.map(({ id, title, url }) => {
    const tab = document.createElement('div');
    tab.className = 'tab';
    tab.setAttribute('aria-current', String(id === front));
    const name = document.createElement('button');
    name.className = 'title';
    name.textContent = title || url;
    name.title = url;
    name.onclick = () => say({ type: 'tab', id });
    const close = document.createElement('button');
    close.textContent = '×';
    close.setAttribute('aria-label', `Close ${title || url}`);
    close.onclick = () => say({ type: 'close-tab', id });
    tab.append(name, close);
    return tab;
  });
  const more = document.createElement('div');
  more.className = 'tab';
  const open = document.createElement('button');
  open.textContent = '+';
  open.setAttribute('aria-label', 'New tab');
  open.onclick = () => say({ type: 'new-tab' });
  more.append(open);
  $('tabs').replaceChildren(...made, more);
  const shown = all.find(({ id }) => id === front);
  if (document.activeElement !== $('address')) $('address').value = shown?.url ?? '';
  document.title = shown?.title ? `${shown.title} (live view)` : 'Live view of a browser session';
  controls();
}

// Mouse

const modifiersOf = (event) =>
  (event.altKey ? 1 : 0) | (event.ctrlKey || event.metaKey ? 2 : 0) | (event.shiftKey ? 8 : 0);

function at(event) {
  const box = screen.getBoundingClientRect();
  return {
    x: Math.round(((event.clientX - box.left) / box.width) * size.width),
    y: Math.round(((event.clientY - box.top) / box.height) * size.height),
  };
}

function mouse(kind, event, more = {}) {
  say({
    ...{ type: 'mouse', event: kind, ...at(event), button: 'none', buttons: event.buttons & 7, clickCount: 0 },
    ...{ modifiers: modifiersOf(event), deltaX: 0, deltaY: 0, ...more },
  });
}

let moved;
screen.addEventListener('pointermove', (event) => {
  if (!mayAct() || event.pointerType === 'touch') return;
  // One for each picture of this screen is enough.
  if (moved === undefined)
    requestAnimationFrame(() => {
      const last = moved;
      moved = undefined;
      mouse('mouseMoved', last, { button: last.buttons & 1 ? 'left' : 'none' });
    });
  moved = event;
});
screen.addEventListener('mousedown', (event) => {
  if (!mayAct()) return;
  event.preventDefault();
  keys.focus({ preventScroll: true });
  mouse('mousePressed', event, { button: BUTTONS[event.button] ?? 'left', clickCount: event.detail || 1 });
});
window.addEventListener('mouseup', (event) => {
  if (!mayAct() || (event.target !== screen && event.buttons === 0 && document.activeElement !== keys)) return;
  if (event.target === screen)
    mouse('mouseReleased', event, { button: BUTTONS[event.button] ?? 'left', clickCount: event.detail || 1 });
});
screen.addEventListener('contextmenu', (event) => event.preventDefault());
screen.addEventListener(
  'wheel',
  (event) => {
    if (!mayAct()) return;
    event.preventDefault();
    mouse('mouseWheel', event, { deltaX: event.deltaX, deltaY: event.deltaY });
  },
  { passive: false },
);

// Touch

const TOUCHES = { touchstart: 'touchStart', touchmove: 'touchMove', touchend: 'touchEnd', touchcancel: 'touchCancel' };
for (const [name, event] of Object.entries(TOUCHES))
  screen.addEventListener(
    name,
    (touch) => {
      if (!mayAct()) return;
      touch.preventDefault();
      keys.focus({ preventScroll: true });
      const held = event === 'touchEnd' || event === 'touchCancel' ? touch.touches : touch.targetTouches;
      say({ type: 'touch', event, points: [...held].map((one) => ({ ...at(one), id: one.identifier })) });
    },
    { passive: false },
  );

// Keyboard and clipboard

function key(kind, event) {
  const modifiers = modifiersOf(event);
  const writes = [...event.key].length === 1 && (modifiers & 3) === 0;
  const text = event.key === 'Enter' ? '\r' : writes ? event.key : undefined;
  const down = text === undefined ? 'rawKeyDown' : 'keyDown';
  say({
    ...{ type: 'key', event: kind === 'down' ? down : 'keyUp', key: event.key, code: event.code, modifiers },
    ...{ windowsVirtualKeyCode: event.keyCode, location: event.location, autoRepeat: event.repeat },
    ...(kind === 'down' && text !== undefined ? { text } : {}),
  });
}

keys.addEventListener('keydown', (event) => {
  // What an input method is writing comes as a whole, by `input`; so does what is pasted, by `paste`.
  if (!mayAct() || event.isComposing || event.key === 'Process' || event.key === 'Dead') return;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === 'v') return;
  if (command && /^[cx]$/i.test(event.key)) say({ type: 'copy' });
  event.preventDefault();
  key('down', event);
});
keys.addEventListener('keyup', (event) => {
  if (!mayAct() || event.isComposing) return;
  event.preventDefault();
  key('up', event);
});
keys.addEventListener('paste', (event) => {
  event.preventDefault();
  if (mayAct()) say({ type: 'text', text: event.clipboardData.getData('text/plain') });
});
keys.addEventListener('input', (event) => {
  if (event.isComposing) return;
  if (mayAct() && keys.value !== '') say({ type: 'text', text: keys.value });
  keys.value = '';
});
keys.addEventListener('compositionend', () => {
  if (mayAct() && keys.value !== '') say({ type: 'text', text: keys.value });
  keys.value = '';
});

async function copied(text) {
  if (text === '') return;
  try {
    await navigator.clipboard.writeText(text);
    problem('');
  } catch {
    problem(`Copied in the session: ${text}`);
  }
}

// Buttons

for (const button of document.querySelectorAll('[data-say]'))
  button.addEventListener('click', () => say({ type: button.dataset.say }));
$('bar').addEventListener('submit', (event) => {
  event.preventDefault();
  if (!mayAct()) return;
  say({ type: 'navigate', url: $('address').value.trim() });
  $('address').blur();
});
$('control').addEventListener('click', () => {
  problem('');
  say({ type: 'control', take: !person });
});
$('share').addEventListener('click', () => say({ type: 'share' }));

function shared(fragment) {
  $('link-text').value = `${location.origin}${location.pathname}#${fragment}`;
  $('link').showModal();
  $('link-text').select();
}

function dialog({ kind, text }) {
  const box = $('question');
  if (kind === null) return box.close();
  $('asked').textContent = text;
  $('answer').hidden = kind !== 'prompt';
  $('answer').value = '';
  box.returnValue = '';
  for (const button of box.querySelectorAll('button')) button.disabled = !mayAct();
  box.onclose = () => {
    if (box.returnValue !== '') say({ type: 'dialog', accept: box.returnValue === 'yes', text: $('answer').value });
  };
  if (!box.open) box.showModal();
}

function files({ multiple }) {
  const box = $('files');
  $('picked').multiple = multiple;
  $('picked').value = '';
  box.returnValue = '';
  box.onclose = async () => {
    if (box.returnValue !== 'yes') return;
    const picked = [...$('picked').files];
    const head = new TextEncoder().encode(
      JSON.stringify(picked.map(({ name, size: bytes }) => ({ name, size: bytes }))),
    );
    const length = new DataView(new ArrayBuffer(4));
    length.setUint32(0, head.length);
    const whole = new Blob([length.buffer, head, ...picked]);
    if (whole.size > 60 * 2 ** 20) return problem('Files of more than 60 MB together are not sent.');
    socket.send(await whole.arrayBuffer());
  };
  box.showModal();
}

controls();
