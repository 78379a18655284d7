/*
 * Runs in a page that the proxy keeps alive, before the page's own scripts: notes who listens to what, writes the page
 * as a flat document, and gives events from the phone to the page.
 */
(function (window) {
  'use strict';

  var document = window.document;
  /* What the page may replace, as it was before its scripts ran. */
  var NativePromise = window.Promise;
  var replaceIn = Function.prototype.call.bind(String.prototype.replace);
  var CLICKS = 'click mousedown mouseup pointerdown pointerup touchstart touchend dblclick'.split(' ');
  var KEYS = 'keydown keyup keypress'.split(' ');
  var CHANGES = 'change input'.split(' ');
  var PRESSES = ['contextmenu'];
  var DROPPED =
    /^(script|noscript|template|link|base|iframe|frame|frameset|object|embed|applet|audio|video|source|track|portal)$/;
  var VOID = /^(area|br|col|hr|img|input|meta|wbr)$/;
  var FIELD = /^(input|select|textarea|button|option|form|a)$/;
  /* Attributes that hold what a field held at first, and those that lead out of the document. */
  var STATE = /^(name|value|checked|selected)$/;
  var REWRITTEN =
    /^(action|method|target|formaction|formmethod|formtarget|form|ping|srcset|nonce|integrity|crossorigin|background|href|src|style|xlink:href|autofocus|data-n|data-tap)$/;
  var RAW = /^(style|xmp|plaintext)$/;
  var NAVIGATION = 'left up right down select'.split(' ');
  var MAX_PENDING_TIMER_MS = 300;
  var LEAVING_MS = 500;

  /* ---- who listens ---- */

  var listeners = new WeakMap();
  var prototype = window.EventTarget.prototype;
  var addListener = prototype.addEventListener;
  var removeListener = prototype.removeEventListener;

  prototype.addEventListener = function (type, listener) {
    if (listener && !listener.local) {
      var types = listeners.get(this || window) || {};
      if (!types[type]) types[type] = new Set();
      types[type].add(listener);
      listeners.set(this || window, types);
    }
    return addListener.apply(this, arguments);
  };

  prototype.removeEventListener = function (type, listener) {
    var types = listeners.get(this || window);
    if (types && types[type]) types[type].delete(listener);
    return removeListener.apply(this, arguments);
  };

  function listens(target, types) {
    var known = listeners.get(target) || {};
    return types.some(function (type) {
      if (known[type] && known[type].size) return true;
      if (typeof target['on' + type] !== 'function') return false;
      /* A handler in the markup that is made of shortcuts is the phone's to answer. */
      return !(target.getAttribute && isLocal(target.getAttribute('on' + type)));
    });
  }

  function isLocal(action) {
    var steps = action && window.handset && window.handset.parse ? window.handset.parse(action) : null;
    return !!steps && steps.length > 0;
  }

  /* The library must leave to the phone what the phone can do: its timers. */
  Object.defineProperty(window, 'handset', {
    configurable: true,
    set: function (library) {
      library.remote = true;
      Object.defineProperty(window, 'handset', { value: library, writable: true, configurable: true });
    }
  });

  /* ---- what is still going on ---- */

  var loads = new Set();
  var timers = 0;
  var inTimer = false;
  var lastChange = 0;
  var lastLoad = 0;

  /* Returns what to call when the load ends. */
  function beginLoad() {
    var load = { since: performance.now() };
    loads.add(load);
    return function () {
      loads.delete(load);
      lastLoad = lastChange = performance.now();
    };
  }

  function endTimer() {
    timers--;
    lastChange = performance.now();
  }

  var fetch = window.fetch;
  window.fetch = function () {
    var end = beginLoad();
    var answer = fetch.apply(window, arguments);
    answer.then(end, end);
    return answer;
  };

  var send = window.XMLHttpRequest.prototype.send;
  window.XMLHttpRequest.prototype.send = function () {
    addListener.call(this, 'loadend', beginLoad(), { once: true });
    return send.apply(this, arguments);
  };

  var setTimer = window.setTimeout;
  var clearTimer = window.clearTimeout;
  var short = {};
  window.setTimeout = function (work, delay) {
    if (typeof work !== 'function' || !(!delay || delay <= MAX_PENDING_TIMER_MS))
      return setTimer.apply(window, arguments);
    var rest = Array.prototype.slice.call(arguments, 2);
    /* A timer that sets the next goes on for ever: only the first is waited for. */
    var counts = !inTimer;
    var id = setTimer(function () {
      delete short[id];
      inTimer = true;
      try {
        work.apply(window, rest);
      } finally {
        inTimer = false;
        if (counts) endTimer();
      }
    }, delay);
    if (counts) {
      timers++;
      short[id] = true;
    }
    return id;
  };
  window.clearTimeout = function (id) {
    if (short[id]) {
      delete short[id];
      endTimer();
    }
    clearTimer(id);
  };

  /* Who leaves the document has a moment to be gone: what is to be seen until then is not what comes. */
  var leaving = 0;
  addListener.call(window, 'beforeunload', function () {
    leaving = performance.now() + LEAVING_MS;
  });

  addListener.call(document, 'DOMContentLoaded', function () {
    new MutationObserver(function () {
      lastChange = performance.now();
    }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  });

  /* One document: what would leave it is stopped after the page's own listeners had their say. */
  addListener.call(window, 'submit', function (event) {
    event.preventDefault();
  });
  addListener.call(window, 'click', function (event) {
    var link = event.target.closest && event.target.closest('a[href]');
    if (!link || link.getAttribute('href').charAt(0) === '#') return;
    var script = !event.defaultPrevented && scriptOf(link.getAttribute('href'));
    event.preventDefault();
    /* What such a script returns would take the place of the document. */
    if (script) setTimer(run, 0, script);
  });

  var NOTHING = /^\s*(void\s*(0|\(\s*0?\s*\)))?[\s;]*$/;

  /* The script of a `javascript:` address; null for any other. */
  function scriptOf(href) {
    var match = /^\s*javascript:([\s\S]*)$/i.exec(href || '');
    if (!match) return null;
    try {
      return decodeURIComponent(match[1]);
    } catch (_malformed) {
      return match[1];
    }
  }

  /* In the global scope, as the browser does; what it throws is an uncaught error of the page. */
  var run = window.eval;

  /* ---- names for elements ---- */

  var numbers = new WeakMap();
  var elements = Object.create(null);
  var count = 0;

  function numberOf(element) {
    if (!numbers.has(element)) {
      numbers.set(element, ++count);
      elements[count] = new WeakRef(element);
    }
    return numbers.get(element);
  }

  function elementOf(number) {
    var element = elements[number] && elements[number].deref();
    return element && element.isConnected ? element : null;
  }

  /* ---- the flat document ---- */

  var ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

  function escapeHtml(text) {
    return replaceIn(text, /[&<>"]/g, function (sign) {
      return ENTITIES[sign];
    });
  }

  /* Where the phone sends its events; empty until it was sent this document. */
  var eventPath = '';

  /* Parts are text, or objects that the server replaces: {style, media} by a sheet, {image} by its content, {css} with urls. */
  function flatten(path) {
    eventPath = path;
    var writer = { parts: [], text: '', locals: {} };
    var root = document.documentElement;
    var clicks = listens(window, CLICKS) || listens(document, CLICKS);
    writer.keys = listens(window, KEYS) || listens(document, KEYS);
    writer.changes = listens(window, CHANGES) || listens(document, CHANGES);
    writer.presses = listens(window, PRESSES) || listens(document, PRESSES);
    writer.hashes = listens(window, ['hashchange']);
    write(root, { click: clicks, root: true, optional: [] }, writer);
    put(writer, null);
    return {
      parts: writer.parts,
      locals: Object.keys(writer.locals),
      scroll: Math.round(window.scrollY),
      language: root.lang
    };
  }

  /* Enter in a field presses the first button of its form: fields outside of any share one, whose first can do nothing. */
  var NO_DEFAULT_BUTTON = '<input type="submit" form="handset-form" disabled style="display:none">';

  function put(writer, part) {
    if (writer.text) writer.parts.push(writer.text);
    writer.text = '';
    if (part) writer.parts.push(part);
  }

  function writeChildren(element, region, writer) {
    for (var child = element.firstChild; child; child = child.nextSibling) {
      if (child.nodeType === 3) writer.text += RAW.test(element.localName) ? '' : escapeHtml(child.data);
      else if (child.nodeType === 1) write(child, region, writer);
    }
  }

  function write(element, region, writer) {
    var tag = element.localName;
    if (
      tag === 'link' &&
      /\bstylesheet\b/i.test(element.rel) &&
      !/\balternate\b/i.test(element.rel) &&
      !element.disabled
    ) {
      put(writer, { style: element.getAttribute('href') || '', media: element.media || '' });
      return;
    }
    if (DROPPED.test(tag) || !/^[a-z][a-z0-9-]*$/.test(tag.toLowerCase())) return;
    if (tag === 'meta' && element.getAttribute('name') !== 'viewport') return;
    if (tag === 'style') {
      put(writer, { css: element.textContent, media: element.media || '' });
      return;
    }
    if (tag === 'canvas') {
      writeCanvas(element, writer);
      return;
    }
    var own = listens(element, CLICKS);
    var collects = tag === 'form' || tag === 'body';
    var inside = {
      click: region.click || own,
      form: region.form || tag === 'form',
      optional: collects ? [] : region.optional
    };
    var button = needsButton(element, tag, region, own);
    writer.text += '<' + tag;
    writeAttributes(element, tag, region, own, writer);
    writer.text += (button ? ' data-tap' : '') + '>';
    if (VOID.test(tag)) return;
    if (tag === 'body') writer.text += NO_DEFAULT_BUTTON;
    if (tag === 'textarea') writer.text += escapeHtml(element.value);
    else writeChildren(element, inside, writer);
    /* A box without a tick and a list without a choice are not sent: what is sent besides says that they were there. */
    if (collects)
      inside.optional.forEach(function (n) {
        writer.text += '<input type="hidden" name="f' + n + '"' + (inside.form ? '' : ' form="handset-form"') + '>';
      });
    if (tag === 'form') writer.text += '<input type="hidden" name="on" value="' + numberOf(element) + ':submit">';
    if (button) {
      var cover = '<noscript><button class="handset-tap" name="on" value="' + numberOf(element) + ':click"';
      writer.text += cover + (inside.form ? '' : ' form="handset-form"') + '></button></noscript>';
    }
    writer.text += '</' + tag + '>';
  }

  /* Where nothing but HTML works, an element that is no link, button or field is covered by a button. */
  function needsButton(element, tag, region, own) {
    if (/^(a|button|form|select|option|label|input|html|body|head|title|table|tbody|thead|tr|ul|ol|dl|svg)$/.test(tag))
      return false;
    /* What holds things to touch has listeners for them. */
    if (element.querySelector('a,button,input,select,textarea,[role=button],[role=link],[tabindex],[onclick]'))
      return false;
    if (own || isLocal(element.getAttribute('onclick')) || element.hasAttribute('data-handset-click')) return true;
    var role = element.getAttribute('role');
    return !!region.click && (role === 'button' || role === 'link' || element.hasAttribute('tabindex'));
  }

  function writeCanvas(element, writer) {
    try {
      writer.text +=
        '<img alt="" width="' + element.width + '" height="' + element.height + '" src="' + element.toDataURL() + '">';
    } catch (_tainted) {
      writer.text += '<span></span>';
    }
  }

  function writeAttributes(element, tag, region, own, writer) {
    var sends = [];
    var local = null;
    var set = {};
    Array.prototype.forEach.call(element.attributes, function (attribute) {
      var name = attribute.name.toLowerCase();
      var value = attribute.value;
      if (/^data-handset-/.test(name)) keepGesture(name.slice(13), value, sends, set, writer);
      else if (name === 'onclick' && isLocal(value)) local = value;
      else if (/^on/.test(name) || !/^[a-z][a-z0-9:_-]*$/.test(name)) return;
      else if (!REWRITTEN.test(name) && !(FIELD.test(tag) && STATE.test(name))) set[name] = value;
    });
    if (local !== null && !set['data-handset-click']) set['data-handset-click'] = local;
    if (set['data-handset-click']) writer.locals[set['data-handset-click']] = true;
    var fake = region.root && tag === 'html';
    if (own || (fake && region.click)) sends.push('click');
    if (listens(element, KEYS) || (fake && writer.keys))
      NAVIGATION.forEach(function (key) {
        sends.push('key-' + key);
      });
    if (listens(element, CHANGES) || (fake && writer.changes)) sends.push('change');
    if (listens(element, PRESSES) || (fake && writer.presses)) sends.push('longpress');
    if (tag === 'a') writeLink(element, region, own || local !== null, sends, set, writer);
    if (sends.length) set['data-handset-send'] = sends.join(' ');
    if (/^(input|select|textarea|button|option)$/.test(tag)) describeField(element, tag, region, set);
    if (tag === 'form') {
      set.method = 'post';
      set.action = eventPath;
    }
    if (sends.length || local !== null || region.click || /^(input|select|textarea|button|form)$/.test(tag)) {
      set['data-n'] = String(numberOf(element));
    }
    Object.keys(set).forEach(function (name) {
      writer.text += ' ' + name + (set[name] === '' ? '' : '="' + escapeHtml(set[name]) + '"');
    });
    if (tag === 'img') writePart(element.getAttribute('src'), 'image', writer);
    if (element.hasAttribute('style')) {
      var style = element.getAttribute('style');
      if (/url\(/i.test(style)) writePart(style, 'inline', writer);
      else if (style) writer.text += ' style="' + escapeHtml(style) + '"';
    }
    if (tag === 'image' || tag === 'use') {
      var reference = element.getAttribute('href') || element.getAttribute('xlink:href') || '';
      if (/^(#|data:image\/)/.test(reference)) writer.text += ' href="' + escapeHtml(reference) + '"';
    }
  }

  function writePart(value, kind, writer) {
    if (!value) return;
    var part = {};
    part[kind] = value;
    put(writer, part);
  }

  /* A gesture whose answer is a function belongs to this page; one whose answer is shortcuts travels. */
  function keepGesture(type, value, sends, set, writer) {
    if (type === 'timers') {
      var all = JSON.parse(value);
      Object.keys(all).forEach(function (name) {
        if (all[name][1].charAt(0) === '@') delete all[name];
        else writer.locals[all[name][1]] = true;
      });
      if (Object.keys(all).length) set['data-handset-timers'] = JSON.stringify(all);
    } else if (value.charAt(0) === '@') sends.push(type);
    else if (isLocal(value)) {
      set['data-handset-' + type] = value;
      writer.locals[value] = true;
    }
  }

  function writeLink(element, region, answers, sends, set, writer) {
    var href = element.getAttribute('href');
    if (href === null && !answers) return;
    var script = scriptOf(href);
    if (script !== null && !answers) {
      if (isLocal(script)) {
        set['data-handset-click'] = script;
        writer.locals[script] = true;
      } else if (!NOTHING.test(script) && sends.indexOf('click') === -1) sends.push('click');
      answers = answers || !NOTHING.test(script);
    }
    var routed = writer.hashes && /^#/.test(href || '');
    if (routed && sends.indexOf('click') === -1) sends.push('click');
    if (answers || routed || region.click) set.href = eventPath + '?on=' + numberOf(element) + ':click';
    else if (/^#/.test(href)) set.href = href;
    else if (/^(https?|tel|sms|mailto):/i.test(href)) {
      set.href = href;
      set.rel = 'noreferrer';
    }
  }

  function describeField(element, tag, region, set) {
    var n = numberOf(element);
    if (!region.form) set.form = 'handset-form';
    if (tag === 'option') {
      delete set.form;
      set.value = String(element.index);
      if (element.selected) set.selected = '';
      return;
    }
    if (tag === 'button' || /^(submit|button|image|reset)$/.test(element.type)) {
      if (tag === 'input') set.value = element.value;
      /* Only HTML is needed to press a button: its name and value say which one it was. A label cannot be a value, so: */
      set.formaction = eventPath + '?on=' + n + ':click';
      set.type = 'submit';
      return;
    }
    if (element.type === 'file') {
      set.disabled = '';
      return;
    }
    if (element.type === 'radio') {
      set.name = 'g' + (element.name ? hash(element.name) : n);
      set.value = String(n);
      if (element.checked) set.checked = '';
      return;
    }
    set.name = 'f' + n;
    if (/^(checkbox|select-multiple)$/.test(element.type) && !element.matches(':disabled')) region.optional.push(n);
    if (element.type === 'checkbox') {
      set.value = '1';
      if (element.checked) set.checked = '';
    } else if (tag === 'input') set.value = element.value;
  }

  function hash(text) {
    var h = 7;
    for (var i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) % 1000003;
    return h;
  }

  /* ---- events from the phone ---- */

  function fire(element, type, Kind, more) {
    var init = { bubbles: true, cancelable: true, composed: true };
    for (var key in more) init[key] = more[key];
    return element.dispatchEvent(new Kind(type, init));
  }

  function setField(element, values) {
    if (!element || !/^(input|select|textarea)$/.test(element.localName) || element.matches(':disabled')) return;
    if (element.type === 'radio') change(element, 'checked', true);
    else if (element.type === 'checkbox') change(element, 'checked', values.indexOf('1') !== -1);
    else if (element.type === 'select-multiple') choose(element, values);
    else if (element.localName === 'select') change(element, 'selectedIndex', Number(values[0]) || 0);
    else if (element.type !== 'file') change(element, 'value', values[0]);
  }

  function change(element, property, value) {
    if (element[property] === value) return;
    element[property] = value;
    fireChange(element);
  }

  function choose(list, indexes) {
    var wrong = Array.prototype.filter.call(list.options, function (option, i) {
      return option.selected !== (indexes.indexOf(String(i)) !== -1);
    });
    wrong.forEach(function (option) {
      option.selected = !option.selected;
    });
    if (wrong.length) fireChange(list);
  }

  function fireChange(element) {
    fire(element, 'input', window.Event);
    fire(element, 'change', window.Event);
  }

  function press(element) {
    var box = element.getBoundingClientRect();
    var at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    var touch =
      window.Touch && new window.Touch({ identifier: 0, target: element, clientX: at.clientX, clientY: at.clientY });
    if (touch) fire(element, 'touchstart', window.TouchEvent, { touches: [touch], changedTouches: [touch] });
    fire(element, 'pointerdown', window.PointerEvent, at);
    fire(element, 'mousedown', window.MouseEvent, at);
    if (element.focus) element.focus({ preventScroll: true });
    if (touch) fire(element, 'touchend', window.TouchEvent, { changedTouches: [touch] });
    fire(element, 'pointerup', window.PointerEvent, at);
    fire(element, 'mouseup', window.MouseEvent, at);
    if (element.click) element.click();
    else fire(element, 'click', window.MouseEvent);
  }

  var KEY_NAMES = {
    left: ['ArrowLeft', 37],
    up: ['ArrowUp', 38],
    right: ['ArrowRight', 39],
    down: ['ArrowDown', 40],
    select: ['Enter', 13]
  };

  function key(element, name) {
    ['keydown', 'keyup'].forEach(function (type) {
      var event = new window.KeyboardEvent(type, {
        bubbles: true,
        cancelable: true,
        key: KEY_NAMES[name][0],
        code: KEY_NAMES[name][0]
      });
      Object.defineProperty(event, 'keyCode', { value: KEY_NAMES[name][1] });
      Object.defineProperty(event, 'which', { value: KEY_NAMES[name][1] });
      element.dispatchEvent(event);
    });
  }

  /* Bring the page to the state that the phone shows, then give it the event; says what was touched, for the log. */
  function receive(message) {
    /* The phone shows a document that is gone: its numbers mean nothing here. */
    if (!eventPath) return '';
    message.locals.forEach(function (action) {
      if (window.handset) window.handset.run(action);
    });
    var element = elementOf(message.target) || document.documentElement;
    /* A box that was tapped is sent as the tap left it, which the click itself does here. */
    var isTappedBox = message.type === 'click' && /^(checkbox|radio)$/.test(element.type);
    Object.keys(message.fields).forEach(function (name) {
      var values = message.fields[name];
      (name.charAt(0) === 'g' ? values : [name.slice(1)]).map(elementOf).forEach(function (field) {
        if (!isTappedBox || field !== element) setField(field, values);
      });
    });
    if (message.scroll !== null) window.scrollTo(0, message.scroll);
    var answered = window.handset && window.handset.answer;
    if (/^(swipe-|longpress)/.test(message.type)) {
      if (message.type === 'longpress') fire(element, 'contextmenu', window.MouseEvent);
      if (answered) window.handset.answer(message.type, element);
    } else if (/^key-/.test(message.type)) {
      key(element, message.type.slice(4));
    } else if (message.type === 'submit' && element.requestSubmit) element.requestSubmit();
    else if (message.type === 'click') press(element);
    lastChange = performance.now();
    return label(element);
  }

  function label(element) {
    var own = element.getAttribute('aria-label') || element.value || element.textContent || '';
    var text = replaceIn(String(own), /\s+/g, ' ').trim();
    return '<' + element.localName + (element.id ? ' #' + element.id : '') + '> ' + text.slice(0, 30);
  }

  /* Resolves when the page has been quiet for a moment, or after the limit; loads have a limit of their own, each and together. */
  function settle(quiet, limit, loadLimit) {
    var start = performance.now();
    return new NativePromise(function (resolve) {
      (function look() {
        var now = performance.now();
        var isLoading = Array.from(loads).some(function (load) {
          return now - load.since < loadLimit;
        });
        var isQuiet =
          document.readyState === 'complete' && !timers && now - Math.max(lastChange, start, leaving) >= quiet;
        /* What came late is to be shown, too. */
        var since = Math.min(Math.max(start, lastLoad), start + loadLimit);
        if (isLoading ? now - start > loadLimit : isQuiet || now - since > limit) resolve();
        else setTimer(look, 10);
      })();
    });
  }

  Object.defineProperty(window, '__handsetAgent', { value: { flatten: flatten, receive: receive, settle: settle } });
})(window);
