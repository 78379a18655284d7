/*
 * Before the modules of app.js: CommonJS as Brunch's users know it. A module's name is its path below app/ without its
 * extension. It runs when it is required first, once; what it does not find here an earlier `require` of the page may know.
 */
(function (global) {
  'use strict';

  var definitions = {};
  var modules = {};
  var earlier = global.require;

  function resolve(from, name) {
    var path = /^\.\.?(\/|$)/.test(name) ? from.split('/').slice(0, -1).concat(name.split('/')) : name.split('/');
    var parts = [];
    path.forEach(function (part) {
      if (part === '..') parts.pop();
      else if (part && part !== '.') parts.push(part);
    });
    var full = parts.join('/').replace(/\.(js|coffee|pug|jade)$/, '');
    return definitions.hasOwnProperty(full)
      ? full
      : definitions.hasOwnProperty(full + '/index')
        ? full + '/index'
        : null;
  }

  function load(name) {
    if (!modules.hasOwnProperty(name)) {
      var module = (modules[name] = { id: name, exports: {} });
      definitions[name].call(global, module.exports, requireFrom(name), module);
    }
    return modules[name].exports;
  }

  function requireFrom(from) {
    return function (name) {
      var full = resolve(from, name);
      if (full !== null) return load(full);
      if (earlier) return earlier(name);
      throw new Error('There is no module "' + name + '"' + (from ? ', which ' + from + ' requires' : '') + '.');
    };
  }

  global.require = requireFrom('');
  global.require.register = function (name, definition) {
    definitions[name] = definition;
  };
  global.require.list = function () {
    return Object.keys(definitions);
  };
})(this);
