/** A function of the client library, with the page that shows it at work. */
export interface ClientExample {
  readonly name: string;
  readonly signature: string;
  /** What it does, in whole sentences. */
  readonly says: string;
  /** The markup of the example. */
  readonly html: string;
  /** How a test touches it: a selector to tap, or a key or swipe or long press. */
  readonly touch:
    | { readonly tap: string }
    | { readonly key: string }
    | { readonly swipe: string }
    | { readonly press: string }
    | { readonly wait: number };
  /** An expression that is true after the touch, and not before. */
  readonly after: string;
}

const button = (text: string, action: string): string => `<button onclick="${action}">${text}</button>`;
const tap = { tap: '#demo button' };

export const CLIENT_EXAMPLES: readonly ClientExample[] = [
  {
    name: 'show',
    signature: 'handset.show(selector)',
    says: 'Shows every element that matches, whether a style or the attribute `hidden` hides it.',
    html: `${button('Show', "handset.show('#box')")}\n<p id="box" class="box" style="display:none">Here I am.</p>`,
    touch: tap,
    after: "document.getElementById('box').offsetHeight > 0",
  },
  {
    name: 'hide',
    signature: 'handset.hide(selector)',
    says: 'Hides every element that matches.',
    html: `${button('Hide', "handset.hide('#box')")}\n<p id="box" class="box">Now you see me.</p>`,
    touch: tap,
    after: "document.getElementById('box').offsetHeight === 0",
  },
  {
    name: 'toggle',
    signature: 'handset.toggle(selector)',
    says: 'Hides what is shown and shows what is hidden.',
    html: `${button('Menu', "handset.toggle('#box')")}\n<p id="box" class="box" style="display:none">One · Two · Three</p>`,
    touch: tap,
    after: "document.getElementById('box').offsetHeight > 0",
  },
  {
    name: 'addClass',
    signature: 'handset.addClass(selector, name)',
    says: 'Adds a class to every element that matches.',
    html: `${button('Mark', "handset.addClass('#box', 'on')")}\n<p id="box" class="box">A row</p>`,
    touch: tap,
    after: "document.getElementById('box').className === 'box on'",
  },
  {
    name: 'removeClass',
    signature: 'handset.removeClass(selector, name)',
    says: 'Takes a class away from every element that matches.',
    html: `${button('Clear the mark', "handset.removeClass('#box', 'on')")}\n<p id="box" class="box on">A row</p>`,
    touch: tap,
    after: "document.getElementById('box').className === 'box'",
  },
  {
    name: 'toggleClass',
    signature: 'handset.toggleClass(selector, name)',
    says: 'Adds a class where it is missing and takes it away where it is not.',
    html: `${button('Mark or clear', "handset.toggleClass('#box', 'on')")}\n<p id="box" class="box">A row</p>`,
    touch: tap,
    after: "document.getElementById('box').className === 'box on'",
  },
  {
    name: 'switchClass',
    signature: 'handset.switchClass(selector, one, other)',
    says: 'Changes one of two classes for the other: whichever is there goes.',
    html: `${button('Switch', "handset.switchClass('#box', 'on', 'off')")}\n<p id="box" class="box off">A lamp</p>`,
    touch: tap,
    after: "document.getElementById('box').className === 'box on'",
  },
  {
    name: 'iterateClass',
    signature: 'handset.iterateClass(selector, first, second, …)',
    says: 'Goes through a list of classes: each call sets the next, and after the last comes the first.',
    html: `${button('Larger', "handset.iterateClass('#box', 'size-1', 'size-2', 'size-3')")}\n<p id="box" class="box size-1">Text</p>`,
    touch: tap,
    after: "document.getElementById('box').className === 'box size-2'",
  },
  {
    name: 'setGroupTarget',
    signature: 'handset.setGroupTarget(group, target, on, off)',
    says: 'Gives one element of a group the class `on` and all others the class `off` (which may be left out): tabs, for example.',
    html: `<div class="tabs"><span class="tab on" id="first">First</span> <span class="tab" id="second">Second</span></div>\n${button('Second', "handset.setGroupTarget('.tab', '#second', 'on')")}`,
    touch: tap,
    after:
      "document.querySelectorAll('.tab.on').length === 1 && document.getElementById('second').className === 'tab on'",
  },
  {
    name: 'setGroupNext',
    signature: 'handset.setGroupNext(group, on, off, step)',
    says: 'Moves the class `on` to the next element of a group, or with a `step` of -1 to the one before; the group is a ring.',
    html: `<p class="row on">One</p><p class="row">Two</p><p class="row">Three</p>\n${button('Next', "handset.setGroupNext('.row', 'on', '', 1)")}`,
    touch: tap,
    after: "document.querySelectorAll('.row')[1].className === 'row on'",
  },
  {
    name: 'insertHTML',
    signature: 'handset.insertHTML(selector, html)',
    says: 'Replaces the content of every element that matches.',
    html: `${button('Fill', "handset.insertHTML('#box', '&lt;b>Bold&lt;/b> news')")}\n<p id="box" class="box">Empty so far</p>`,
    touch: tap,
    after: "document.querySelectorAll('#box b').length === 1",
  },
  {
    name: 'clear',
    signature: 'handset.clear(selector)',
    says: 'Empties fields, and removes the content of other elements.',
    html: `<input id="box" value="Some words">\n${button('Clear', "handset.clear('#box')")}`,
    touch: tap,
    after: "document.getElementById('box').value === ''",
  },
  {
    name: 'setInputValue',
    signature: 'handset.setInputValue(selector, value)',
    says: 'Puts a value into every field that matches.',
    html: `<input id="box" value="">\n${button('Today', "handset.setInputValue('#box', 'today')")}`,
    touch: tap,
    after: "document.getElementById('box').value === 'today'",
  },
  {
    name: 'scrollTo',
    signature: 'handset.scrollTo(selector)',
    says: 'Scrolls to the first element that matches.',
    html: `${button('To the end', "handset.scrollTo('#end')")}\n<p style="height:1200px">A long way.</p>\n<p id="end" class="box">The end</p>`,
    touch: tap,
    after: 'window.pageYOffset > 500',
  },
  {
    name: 'timer',
    signature: 'handset.timer(name, milliseconds, action, repeat)',
    says: 'Runs an action text after some time, or again and again if `repeat` is true. A timer of the same name is replaced.',
    html: `<p id="box" class="box">Wait …</p>\n<script>handset.timer('greet', 300, "handset.insertHTML('#box', 'Hello.')");</script>`,
    touch: { wait: 300 },
    after: "document.getElementById('box').textContent === 'Hello.'",
  },
  {
    name: 'stopTimer',
    signature: 'handset.stopTimer(name)',
    says: 'Ends a timer.',
    html: `<p id="box" class="box">Blinking</p>\n<script>handset.timer('blink', 200, "handset.toggleClass('#box', 'on')", true);</script>\n${button('Stop', "handset.stopTimer('blink')")}`,
    touch: tap,
    after: "document.documentElement.getAttribute('data-handset-timers') === null",
  },
  {
    name: 'onSwipe',
    signature: 'handset.onSwipe(selector, direction, action)',
    says: 'Runs an action text when a finger moves `left`, `right`, `up` or `down` over an element that matches.',
    html: `<p id="box" class="box pad">Swipe me to the left.</p>\n<script>handset.onSwipe('#box', 'left', "handset.addClass('#box', 'on')");</script>`,
    touch: { swipe: '#box' },
    after: "document.getElementById('box').className === 'box pad on'",
  },
  {
    name: 'onKey',
    signature: 'handset.onKey(key, action)',
    says: 'Runs an action text when a navigation key is pressed: `left`, `up`, `right`, `down` or `select`.',
    html: `<p class="row">One</p><p class="row">Two</p>\n<script>handset.onKey('down', "handset.setGroupNext('.row', 'on', '', 1)");</script>`,
    touch: { key: 'ArrowDown' },
    after: "document.querySelector('.row').className === 'row on'",
  },
  {
    name: 'onLongPress',
    signature: 'handset.onLongPress(selector, action)',
    says: 'Runs an action text when a finger rests on an element that matches for 0.6 seconds.',
    html: `<p id="box" class="box pad">Press me for a while.</p>\n<script>handset.onLongPress('#box', "handset.addClass('#box', 'on')");</script>`,
    touch: { press: '#box' },
    after: "document.getElementById('box').className === 'box pad on'",
  },
];

/** The page of one example, or the list of all. */
export function examplePage(example: ClientExample): string {
  return page(
    example.name,
    `<p><code>${escapeHtml(example.signature)}</code></p>
<p>${prose(example.says)}</p>
<div id="demo">
${example.html}
</div>
<pre>${escapeHtml(example.html)}</pre>
<p><a href="index.html">All functions</a></p>`,
  );
}

export function exampleIndex(): string {
  const rows = CLIENT_EXAMPLES.map(
    ({ name, signature }) => `<p><a href="${name}.html">${escapeHtml(signature)}</a></p>`,
  );
  return page('handset: local shortcuts', rows.join('\n'));
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="examples.css">
<script src="../handset.js"></script>
</head>
<body>
<h1>${title}</h1>
${body}
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}
