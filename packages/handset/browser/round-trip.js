/*
 * Runs on the phone's side of the proxy, after the client library: sends what no shortcut answers to the proxy, together
 * with what happened locally since the last document. It stands for what such a phone's browser does by itself.
 */
(function (document, handset) {
  'use strict';

  var MAX_LOCAL = 200;
  var locals = [];
  var form = document.getElementById('handset-form');
  var sent = false;

  function sends(type, element) {
    var types = element.getAttribute('data-handset-send');
    return !!types && (' ' + types + ' ').indexOf(' ' + type + ' ') !== -1;
  }

  function numbered(element) {
    while (element && element.getAttribute && !element.getAttribute('data-n')) element = element.parentNode;
    return element && element.getAttribute ? element.getAttribute('data-n') : '0';
  }

  function field(name, value) {
    var input = document.createElement('input');
    input.type = 'hidden';
    input.name = name;
    input.value = value;
    form.appendChild(input);
  }

  function post(target, type) {
    if (sent) return;
    sent = true;
    field('on', target + ':' + type);
    field('y', String(Math.round(window.pageYOffset)));
    locals.forEach(function (action) {
      field('local', action);
    });
    Array.prototype.forEach.call(document.querySelectorAll('input,select,textarea'), function (control) {
      if (!/^[fg]\d+$/.test(control.name) || control.form === form) return;
      if (control.type === 'radio') {
        if (control.checked && !control.defaultChecked) field(control.name, control.value);
      } else if (control.type === 'checkbox') {
        if (control.checked !== control.defaultChecked) field(control.name, control.checked ? '1' : '0');
      } else if (control.type === 'select-multiple') {
        field(control.name, '');
        Array.prototype.forEach.call(control.options, function (option) {
          if (option.selected) field(control.name, option.value);
        });
      } else if (control.localName === 'select' || control.value !== control.defaultValue) {
        field(control.name, control.value);
      }
    });
    form.submit();
  }

  handset.claims = function (type, element) {
    return (
      sends(type, element) ||
      (type === 'click' && /^(a|button)$/i.test(element.tagName) && !!element.getAttribute('data-n'))
    );
  };

  /* The element or what it stands in, as far as the first that has an answer; null without one. */
  function nearest(element, type, answers) {
    while (element && element.getAttribute && !answers(type, element)) element = element.parentNode;
    return element && element.getAttribute ? element : null;
  }

  handset.unanswered = function (type, target, event) {
    var element = nearest(target, type, handset.claims);
    if (!element) return false;
    /* A field in an element that listens answers a tap by taking the cursor; a tap on a box is more than that. */
    if (
      type === 'click' &&
      /^(input|select|textarea|option|label)$/i.test(target.tagName) &&
      element !== target &&
      !/^(submit|button|checkbox|radio)$/.test(target.type)
    )
      return false;
    event.preventDefault();
    post(numbered(target), type);
    return true;
  };

  handset.observe = function (type, _element, action) {
    if (action === null) return;
    locals.push(action);
    if (locals.length > MAX_LOCAL) locals.shift();
    document.dispatchEvent(new CustomEvent('handset-local', { detail: { type: type, action: action } }));
  };

  document.addEventListener('submit', function (event) {
    if (event.target === form) return;
    event.preventDefault();
    var on = event.target.querySelector('input[name=on]');
    post(on ? on.value.split(':')[0] : '0', 'submit');
  });

  document.addEventListener('change', function (event) {
    var element = event.target;
    /* What was typed goes with the next event: a trip of its own would swallow the tap that ended the typing. */
    if (!/^(checkbox|radio|select-one|select-multiple)$/.test(element.type)) return;
    if (nearest(element, 'change', sends)) post(numbered(element), 'change');
  });

  /* Keys stay with the field that is typed in, but Enter outside of a form is meant for the page. */
  document.addEventListener('keydown', function (event) {
    var element = event.target;
    var typed = element.localName === 'input' && element.form === form && element.type !== 'submit';
    if (event.keyCode === 13 && typed && nearest(element, 'key-select', sends)) post(numbered(element), 'key-select');
  });

  /* A visit that is left ends soon, unless its document is loaded again. */
  window.addEventListener('pagehide', function () {
    if (!sent && window.navigator.sendBeacon)
      window.navigator.sendBeacon(form.getAttribute('action').replace(/\/event$/, '/leave'));
  });

  var scroll = Number(document.body.getAttribute('data-handset-scroll'));
  if (scroll) window.scrollTo(0, scroll);
  var said = document.body.getAttribute('data-handset-alert');
  if (said)
    window.setTimeout(function () {
      window.alert(said);
    }, 0);
  /* Going back to this document, and loading it again, asks for the page as it is; neither repeats the event. */
  window.history.replaceState(null, '', form.getAttribute('action').replace(/\/event$/, ''));
})(document, window.handset);
