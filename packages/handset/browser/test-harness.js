/* Runs in the page that `handset test` makes: the functions with which unit tests are written. */
(function (window) {
  'use strict';

  var tests = [];
  var groups = [];

  function group(name) {
    return { name: name, before: [], after: [] };
  }

  window.describe = function (name, body) {
    groups.push(group(name));
    body();
    groups.pop();
  };

  window.test = window.it = function (name, body) {
    var around = groups.slice();
    var path = around.map(function (each) {
      return each.name;
    });
    tests.push({ name: path.concat(name).join(' › '), body: body, groups: around });
  };

  window.beforeEach = function (body) {
    current('before').push(body);
  };
  window.afterEach = function (body) {
    current('after').push(body);
  };

  var top = group('');
  function current(kind) {
    return (groups[groups.length - 1] || top)[kind];
  }

  function fail(message, fallback) {
    var error = new Error(message || fallback);
    error.name = 'AssertionError';
    throw error;
  }

  function kind(value) {
    return Object.prototype.toString.call(value).slice(8, -1);
  }

  function show(value) {
    if (typeof value === 'string') return JSON.stringify(value);
    if (value && value.nodeType === 1) return '<' + value.tagName.toLowerCase() + '>';
    if (typeof value === 'function') return 'a function';
    if (/^(RegExp|Error)$/.test(kind(value))) return String(value);
    try {
      return JSON.stringify(value) || String(value);
    } catch (_circular) {
      return String(value);
    }
  }

  function same(a, b, depth) {
    if (a === b || (typeof a === 'number' && typeof b === 'number' && isNaN(a) && isNaN(b))) return true;
    if (!a || !b || typeof a !== 'object' || typeof b !== 'object' || depth > 50) return false;
    if (kind(a) !== kind(b) || !sameInside(a, b, depth)) return false;
    var keys = Object.keys(a);
    if (keys.length !== Object.keys(b).length) return false;
    return keys.every(function (key) {
      return Object.prototype.hasOwnProperty.call(b, key) && same(a[key], b[key], depth + 1);
    });
  }

  /* What two objects of one kind hold besides their keys. */
  function sameInside(a, b, depth) {
    if (a.nodeType) return a.isEqualNode(b);
    switch (kind(a)) {
      case 'Date':
      case 'Number':
      case 'String':
      case 'Boolean':
        return same(a.valueOf(), b.valueOf(), depth + 1);
      case 'RegExp':
        return String(a) === String(b) && a.lastIndex === b.lastIndex;
      case 'Error':
        return a.name === b.name && a.message === b.message;
      case 'Map':
      case 'Set': {
        var others = entries(b);
        return (
          a.size === b.size &&
          entries(a).every(function (entry) {
            return others.some(function (other) {
              return same(entry, other, depth + 1);
            });
          })
        );
      }
      default:
        return true;
    }
  }

  function entries(collection) {
    var list = [];
    collection.forEach(function (value, key) {
      list.push([key, value]);
    });
    return list;
  }

  var assert = function (value, message) {
    if (!value) fail(message, 'expected something true, got ' + show(value));
  };
  assert.ok = assert;
  assert.equal = function (actual, expected, message) {
    if (actual !== expected) fail(message, 'expected ' + show(expected) + ', got ' + show(actual));
  };
  assert.notEqual = function (actual, other, message) {
    if (actual === other) fail(message, 'expected something other than ' + show(other));
  };
  assert.deepEqual = function (actual, expected, message) {
    if (!same(actual, expected, 0)) fail(message, 'expected ' + show(expected) + ', got ' + show(actual));
  };
  assert.match = function (text, pattern, message) {
    if (!pattern.test(text)) fail(message, 'expected ' + show(text) + ' to match ' + pattern);
  };
  assert.throws = function (body, pattern, message) {
    try {
      body();
    } catch (error) {
      if (pattern && !pattern.test(String(error.message))) {
        fail(message, 'expected an error like ' + pattern + ', got ' + show(error.message));
      }
      return;
    }
    fail(message, 'expected an error');
  };
  window.assert = assert;

  /* What the runner calls. */
  window.__handsetTests = {
    names: function () {
      return tests.map(function (each) {
        return each.name;
      });
    },
    forget: function () {
      tests = [];
    },
    run: function (index) {
      var one = tests[index];
      var before = [top].concat(one.groups).reduce(function (all, each) {
        return all.concat(each.before);
      }, []);
      var after = one.groups
        .concat()
        .reverse()
        .concat(top)
        .reduce(function (all, each) {
          return all.concat(each.after);
        }, []);
      var steps = before.concat(one.body);
      return chain(steps).then(
        function () {
          return chain(after);
        },
        function (error) {
          return chain(after).then(function () {
            throw error;
          });
        }
      );
    }
  };

  function chain(steps) {
    return steps.reduce(function (earlier, step) {
      return earlier.then(function () {
        return call(step);
      });
    }, window.Promise.resolve());
  }

  /* A step that takes an argument is finished when it calls it. */
  function call(step) {
    if (step.length === 0) return step();
    return new window.Promise(function (resolve, reject) {
      step(function (error) {
        if (error) reject(error);
        else resolve();
      });
    });
  }
})(window);
