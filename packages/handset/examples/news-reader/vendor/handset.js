/*! handset client library 0.1.0 | Apache-2.0 | local shortcuts for phones that run no other JavaScript */
(function (window, document) {
  'use strict';

  /* An escape that is none, and one by an octal number, is left to the page. */
  var ESCAPE = '\\\\(u[\\da-fA-F]{4}|x[\\da-fA-F]{2}|[^\\dux\\s]| )';
  var ESCAPED = ESCAPE.replace('(', '(?:');
  var LITERAL = "(?:'(?:[^'\\\\]|" + ESCAPED + ')*\'|"(?:[^"\\\\]|' + ESCAPED + ')*"|-?\\d+(?:\\.\\d+)?|true|false)';
  var STATEMENT = new RegExp(
    '^\\s*(?:return\\s+false|(handset|mwl)\\.(\\w+)\\(\\s*((?:' +
      LITERAL +
      '\\s*(?:,\\s*' +
      LITERAL +
      '\\s*)*)?)\\))\\s*(?:;|$)'
  );
  var ESCAPES = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v' };
  var KEYS = { 37: 'left', 38: 'up', 39: 'right', 40: 'down', 13: 'select' };
  var FIELD = /^(input|textarea|select)$/i;
  var SWIPE_PIXELS = 30;
  var PRESS_PIXELS = 10;
  var PRESS_MS = 600;
  var TIMERS = 'data-handset-timers';

  var handset = {};
  var shortcuts = {};
  var functions = [];
  var running = {};
  var start = null;
  var pressed = false;

  function each(selector, work) {
    var list = selector && selector.nodeType ? [selector] : document.querySelectorAll(selector);
    Array.prototype.forEach.call(list, work);
    return list.length;
  }

  function hidden(element) {
    return window.getComputedStyle(element).display === 'none';
  }

  function show(element) {
    element.removeAttribute('hidden');
    element.style.display = '';
    if (hidden(element)) element.style.display = 'block';
  }

  function hide(element) {
    element.style.display = 'none';
  }

  /* The attribute and not the property, which is no text in SVG. */
  function classes(element) {
    return (element.getAttribute('class') || '').split(/\s+/).filter(Boolean);
  }

  function has(element, name) {
    return (' ' + classes(element).join(' ') + ' ').indexOf(' ' + name + ' ') !== -1;
  }

  function remove(element, name) {
    if (!has(element, name)) return;
    var left = classes(element).filter(function (other) {
      return other !== name;
    });
    element.setAttribute('class', left.join(' '));
  }

  function add(element, name) {
    if (name && !has(element, name)) element.setAttribute('class', classes(element).concat(name).join(' '));
  }

  /* Every function of `shortcuts` may stand in an action text, be answered on the phone, and be replayed elsewhere. */
  shortcuts.show = function (selector) {
    each(selector, show);
  };
  shortcuts.hide = function (selector) {
    each(selector, hide);
  };
  shortcuts.toggle = function (selector) {
    each(selector, function (element) {
      (hidden(element) ? show : hide)(element);
    });
  };
  shortcuts.addClass = function (selector, name) {
    each(selector, function (element) {
      add(element, name);
    });
  };
  shortcuts.removeClass = function (selector, name) {
    each(selector, function (element) {
      remove(element, name);
    });
  };
  shortcuts.toggleClass = function (selector, name) {
    each(selector, function (element) {
      (has(element, name) ? remove : add)(element, name);
    });
  };
  shortcuts.switchClass = function (selector, one, other) {
    each(selector, function (element) {
      var from = has(element, one) ? one : other;
      remove(element, from);
      add(element, from === one ? other : one);
    });
  };
  shortcuts.iterateClass = function (selector) {
    var names = Array.prototype.slice.call(arguments, 1);
    each(selector, function (element) {
      var at = -1;
      names.forEach(function (name, i) {
        if (has(element, name)) at = i;
        remove(element, name);
      });
      add(element, names[(at + 1) % names.length]);
    });
  };
  shortcuts.setGroupTarget = function (group, target, on, off) {
    each(group, function (element) {
      remove(element, on);
      add(element, off);
    });
    each(target, function (element) {
      remove(element, off);
      add(element, on);
    });
  };
  shortcuts.setGroupNext = function (group, on, off, step) {
    var list = document.querySelectorAll(group);
    var at = -1;
    each(group, function (element, i) {
      if (has(element, on)) at = i;
    });
    if (!list.length) return;
    var by = step === undefined ? 1 : step;
    var next = list[((((at === -1 && by < 0 ? 0 : at) + by) % list.length) + list.length) % list.length];
    shortcuts.setGroupTarget(group, next, on, off);
    if (next.scrollIntoView) next.scrollIntoView({ block: 'nearest' });
  };
  shortcuts.insertHTML = function (selector, html) {
    each(selector, function (element) {
      element.innerHTML = html;
    });
  };
  shortcuts.clear = function (selector) {
    each(selector, function (element) {
      if (FIELD.test(element.tagName)) element.value = '';
      else element.innerHTML = '';
    });
  };
  shortcuts.setInputValue = function (selector, value) {
    each(selector, function (element) {
      element.value = value;
    });
  };
  shortcuts.scrollTo = function (selector) {
    var element = document.querySelector(selector);
    if (element) element.scrollIntoView();
  };
  shortcuts.timer = function (name, milliseconds, action, repeat) {
    shortcuts.stopTimer(name);
    remember(name, [milliseconds, keep(action), !!repeat]);
    startTimer(name, milliseconds, keep(action), repeat);
  };
  shortcuts.stopTimer = function (name) {
    window.clearInterval(running[name]);
    delete running[name];
    remember(name);
  };
  shortcuts.onSwipe = function (selector, direction, action) {
    listen(selector, 'swipe-' + direction, action);
  };
  shortcuts.onKey = function (key, action) {
    listen('html', 'key-' + key, action);
  };
  shortcuts.onLongPress = function (selector, action) {
    listen(selector, 'longpress', action);
  };

  Object.keys(shortcuts).forEach(function (name) {
    handset[name] = shortcuts[name];
  });

  /* Listeners and timers are attributes of the document: a copy of the document carries them. */
  function listen(selector, type, action) {
    each(selector, function (element) {
      element.setAttribute('data-handset-' + type, keep(action));
    });
  }

  /* A function cannot travel; it is kept here, and its place in the document says that only this page can answer. */
  function keep(action) {
    return typeof action === 'function' ? '@' + (functions.push(action) - 1) : action;
  }

  function timers() {
    return JSON.parse(document.documentElement.getAttribute(TIMERS) || '{}');
  }

  function remember(name, timer) {
    var all = timers();
    if (timer) all[name] = timer;
    else delete all[name];
    if (Object.keys(all).length) document.documentElement.setAttribute(TIMERS, JSON.stringify(all));
    else document.documentElement.removeAttribute(TIMERS);
  }

  function startTimer(name, milliseconds, action, repeat) {
    /* A page that lives on a proxy leaves to the phone what the phone can do. */
    if (handset.remote && action.charAt(0) !== '@') return;
    running[name] = window.setInterval(function () {
      if (!repeat) shortcuts.stopTimer(name);
      perform('timer', document.documentElement, action);
    }, milliseconds);
  }

  /* The steps of an action text as [name, arguments], or null if it says anything but shortcuts with literals. */
  handset.parse = function (text) {
    var steps = [];
    var match;
    while (/\S/.test(text)) {
      match = STATEMENT.exec(text);
      if (!match || (match[1] && !shortcuts.hasOwnProperty(match[2]))) return null;
      /* The older timer counts its turns and may run any script. */
      if (match[1] === 'mwl' && match[2] === 'timer') return null;
      if (match[1]) steps.push([match[2], (match[3].match(new RegExp(LITERAL, 'g')) || []).map(value)]);
      text = text.slice(match[0].length);
    }
    return steps;
  };

  function value(literal) {
    var quoted = /^['"]/.test(literal);
    if (!quoted) return literal === 'true' || (literal === 'false' ? false : Number(literal));
    return literal.slice(1, -1).replace(new RegExp(ESCAPE, 'g'), function (_all, said) {
      return said[1] ? String.fromCharCode(parseInt(said.slice(1), 16)) : ESCAPES[said] || said;
    });
  }

  /* Do what an action text says; false if it is not made of shortcuts alone. Nothing is ever evaluated as code. */
  handset.run = function (text) {
    var steps = handset.parse(text);
    if (!steps) return false;
    steps.forEach(function (step) {
      shortcuts[step[0]].apply(handset, step[1]);
    });
    return true;
  };

  function perform(type, element, action) {
    var own = action.charAt(0) === '@' && functions[action.slice(1)];
    if (own) own.call(element);
    else if (!handset.run(action)) return false;
    if (handset.observe) handset.observe(type, element, own ? null : action);
    return true;
  }

  /* The nearest element that has an answer to the gesture gives it. */
  function gesture(type, target, event) {
    var element = target;
    for (; element && element.getAttribute; element = element.parentNode) {
      var action = element.getAttribute('data-handset-' + type);
      if (action === null && handset.claims && handset.claims(type, element)) break;
      if (action !== null && perform(type, element, action)) {
        event.preventDefault();
        return true;
      }
    }
    return !!handset.unanswered && handset.unanswered(type, target, event);
  }

  function point(event) {
    var touch = event.changedTouches ? event.changedTouches[0] : event;
    return { x: touch.clientX, y: touch.clientY };
  }

  function down(event) {
    cancel();
    var timer = window.setTimeout(function () {
      if (start) pressed = gesture('longpress', start.target, event);
    }, PRESS_MS);
    pressed = false;
    start = { at: point(event), target: event.target, timer: timer };
  }

  /* A finger that moves scrolls or swipes. */
  function move(event) {
    if (!start) return;
    var to = point(event);
    if (Math.max(Math.abs(to.x - start.at.x), Math.abs(to.y - start.at.y)) > PRESS_PIXELS) {
      window.clearTimeout(start.timer);
    }
  }

  function cancel() {
    if (start) window.clearTimeout(start.timer);
    start = null;
  }

  function up(event) {
    if (!start) return;
    var from = start;
    var to = point(event);
    var x = to.x - from.at.x;
    var y = to.y - from.at.y;
    cancel();
    if (Math.max(Math.abs(x), Math.abs(y)) < SWIPE_PIXELS) return;
    var sideways = Math.abs(x) > Math.abs(y);
    pressed =
      gesture('swipe-' + (sideways ? (x < 0 ? 'left' : 'right') : y < 0 ? 'up' : 'down'), from.target, event) ||
      pressed;
  }

  function click(event) {
    /* The click that ends a long press or a swipe is not another answer. */
    if (pressed) event.preventDefault();
    else gesture('click', event.target, event);
    pressed = false;
  }

  function keydown(event) {
    var key = KEYS[event.keyCode];
    if (key && !FIELD.test(event.target.tagName)) gesture('key-' + key, event.target, event);
  }

  /* What a proxy calls to give a page's own function the gesture that came from the phone. */
  handset.answer = function (type, element) {
    return gesture(type, element, { preventDefault: function () {} });
  };

  /* A proxy looks for listeners that only the page can answer: these are not among them. */
  [down, move, cancel, up, click, keydown].forEach(function (listener) {
    listener.local = true;
  });

  var touch = 'ontouchstart' in window;
  document.addEventListener(touch ? 'touchstart' : 'mousedown', down);
  document.addEventListener(touch ? 'touchmove' : 'mousemove', move);
  document.addEventListener('touchcancel', cancel);
  document.addEventListener(touch ? 'touchend' : 'mouseup', up);
  document.addEventListener('click', click);
  document.addEventListener('keydown', keydown);
  document.addEventListener('DOMContentLoaded', function () {
    var all = timers();
    Object.keys(all).forEach(function (name) {
      if (!running[name]) startTimer(name, all[name][0], all[name][1], all[name][2]);
    });
  });

  handset.version = '0.1.0';
  window.handset = handset;

  /* The name and the functions by which older applications know these shortcuts; what a page has already stays. */
  if (!window.mwl) {
    var mwl = {};
    Object.keys(shortcuts).forEach(function (name) {
      mwl[name] = shortcuts[name];
    });
    mwl.loadURL = function (address) {
      window.location.href = address;
    };
    mwl.timer = function (name, milliseconds, times, action) {
      var left = times;
      var run = legacy(action);
      if (!(times > 1)) return shortcuts.timer(name, milliseconds, run, times !== 1);
      shortcuts.timer(
        name,
        milliseconds,
        function () {
          if (--left === 0) shortcuts.stopTimer(name);
          if (typeof run === 'function') run();
          else handset.run(run);
        },
        true
      );
    };
    ['Left', 'Right', 'Up', 'Down'].forEach(function (side) {
      mwl['addSwipe' + side + 'Listener'] = function (selector, action) {
        shortcuts.onSwipe(selector, side.toLowerCase(), legacy(action));
      };
      mwl['addNav' + side + 'Listener'] = function (action) {
        shortcuts.onKey(side.toLowerCase(), legacy(action));
      };
    });
    mwl.addLongPressListener = function (selector, action) {
      shortcuts.onLongPress(selector, legacy(action));
    };
    window.mwl = mwl;
  }

  /* Older applications name any script as an action: what is no shortcut is the page's own to run. */
  function legacy(action) {
    if (typeof action !== 'string' || handset.parse(action)) return action;
    return function () {
      var evaluate = window.eval;
      evaluate(action);
    };
  }
})(window, document);
