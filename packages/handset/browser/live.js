/* Runs in a page that `handset watch` serves: reloads it, swaps its style sheets, and shows what does not compile. */
(function () {
  'use strict';
  /* The build that this page was made by, as the server wrote it into the address of this script. */
  var known = Number((document.currentScript.src.split('build=')[1] || '').split('&')[0]);
  var overlay = null;
  var source = null;
  var handlers = {};

  function on(type, handler) {
    handlers[type] = function (event) {
      handler(JSON.parse(event.data));
    };
  }

  /* A browser has six connections to a server: who is not looked at gives his back, and is greeted anew when he is. */
  function connect() {
    if (source) source.close();
    source = document.hidden ? null : new EventSource('/__handset/events');
    Object.keys(source ? handlers : {}).forEach(function (type) {
      source.addEventListener(type, handlers[type]);
    });
  }

  on('hello', function (data) {
    if (known !== data.build) location.reload();
    known = data.build;
  });

  on('reload', function (data) {
    known = data.build;
    location.reload();
  });

  on('css', function (data) {
    known = data.build;
    var links = Array.prototype.slice.call(document.querySelectorAll('link[rel~="stylesheet"]'));
    var swapped = links.filter(function (link) {
      return swap(link, data);
    }).length;
    /* A sheet that is only imported by another has no link of its own. */
    if (swapped < data.files.length) location.reload();
  });

  /* New sheets that are not there yet. */
  var loading = [];

  /* The old sheet stays until the new one is there, so that the page never stands without style. */
  function swap(link, data) {
    var path = decodeURIComponent(new URL(link.href, location.href).pathname).slice(1);
    if (data.files.indexOf(path) === -1) return false;
    if (loading.indexOf(link) !== -1) {
      /* The one before it, which it was to follow, has a newer one by now. */
      end(link);
      remove(link);
      return false;
    }
    var next = link.cloneNode();
    next.href = link.href.split('?')[0] + '?build=' + data.build;
    next.onload = next.onerror = function () {
      end(next);
      remove(link);
    };
    loading.push(next);
    link.parentNode.insertBefore(next, link.nextSibling);
    return true;
  }

  function end(link) {
    link.onload = link.onerror = null;
    loading.splice(loading.indexOf(link), 1);
  }

  function remove(link) {
    if (link.parentNode) link.parentNode.removeChild(link);
  }

  on('problems', function (data) {
    if (overlay) {
      overlay.parentNode.removeChild(overlay);
      overlay = null;
    }
    var errors = data.problems.filter(function (problem) {
      return problem.severity === 'error';
    });
    if (errors.length) show(errors);
  });

  function show(errors) {
    overlay = document.createElement('div');
    overlay.id = 'handset-problems';
    overlay.setAttribute('role', 'alert');
    overlay.style.cssText =
      'position:fixed;left:0;top:0;right:0;bottom:0;z-index:2147483647;overflow:auto;margin:0;padding:8px;' +
      'background:#1c1c24;color:#f4f4f8;font:12px/1.4 monospace;text-align:left;white-space:normal';
    errors.forEach(add);
    document.documentElement.appendChild(overlay);
  }

  function add(problem) {
    var place = problem.file + (problem.line ? ':' + problem.line : '') + (problem.column ? ':' + problem.column : '');
    line('div', place, 'color:#ffb86b;font-weight:bold;margin-top:8px;word-break:break-all');
    line('div', problem.message, 'margin:2px 0');
    if (problem.frame)
      line('pre', problem.frame, 'margin:4px 0;padding:4px;background:#2b2b38;overflow-x:auto;font:inherit');
    line('div', problem.remedy, 'color:#a8d8a8');
  }

  function line(tag, text, style) {
    var element = document.createElement(tag);
    element.style.cssText = style;
    element.appendChild(document.createTextNode(text));
    overlay.appendChild(element);
  }

  document.addEventListener('visibilitychange', connect);
  connect();
})();
