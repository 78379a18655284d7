import type { Node } from 'acorn';
import type { Definitions } from './definitions.ts';
import { LATER_GLOBALS, LATER_METHODS, LATER_STATICS, type Receiver } from './later-names.ts';
import {
  identifierOf,
  isDeclaration,
  isLabelOrKey,
  isNode,
  memberOf,
  type Place,
  placesOf,
  stringOf,
  type TreeNode,
} from './syntax-tree.ts';
import { type TypeOf, typesOf } from './value-type.ts';

/** A use of what came after ES5. */
export interface LaterUse {
  readonly kind: 'global' | 'method';
  /** What an application writes to allow it: `Promise`, `Object.assign`, `includes`. */
  readonly name: string;
  readonly node: Node;
  readonly message: string;
  /** What to write instead; may be empty. */
  readonly wayOut: string;
  /** What to do if it is not what it seems; only where the object is not known. */
  readonly doubt?: string;
}

/**
 * Find what an ES5 script uses that only later versions have, in the order of the script.
 *
 * A method is reported where its object is plainly an array, a string or a regular expression. Where that cannot be known,
 * it is reported unless the object comes of a library call (`$(…)`, `_`, `this.$el`) or is `this`, or some script of the
 * application defines a member of that name. What is asked for first (`if (window.Promise)`, `typeof`, `in`) and what a
 * script brings (`Array.prototype.find = …`) is not reported.
 */
export function laterUses(tree: Node, definitions: Definitions, isTemplate = false): LaterUse[] {
  const places = [...placesOf(tree)];
  // A compiled template makes a parameter of every name that it uses, and asks for it by `typeof`.
  const counts = (place: Place): boolean => isDeclaration(place) && !(isTemplate && place.key === 'params');
  const declared = new Set(places.filter((p) => p.node.type === 'Identifier' && counts(p)).map(nameOf));
  const typeOf = typesOf(tree);
  const nameHere = (node: unknown): string | undefined => {
    const name = globalName(node, declared);
    return name !== undefined && !declared.has(name.split('.')[0] ?? '') ? name : undefined;
  };
  const asked = new Set<string>();
  for (const place of isTemplate ? [] : places) for (const name of askedBy(place, nameHere)) asked.add(name);

  const uses: LaterUse[] = [];
  const add = (use: LaterUse): void => {
    if (!asked.has(use.name)) uses.push(use);
  };
  for (const place of places) {
    const { node } = place;
    if (isTarget(place)) continue;
    const name =
      node.type === 'Identifier' && (isDeclaration(place) || isLabelOrKey(place)) ? undefined : nameHere(node);
    const wayOut =
      name === undefined
        ? undefined
        : ((definitions.globals.has(name) ? undefined : LATER_GLOBALS.get(name)) ??
          (definitions.statics.has(name) ? undefined : LATER_STATICS.get(name)));
    if (name !== undefined && wayOut !== undefined) {
      add({ kind: 'global', node, name, message: `${name} is not part of ES5.`, wayOut });
    } else if (node.type === 'MemberExpression') {
      const found = methodUse(place, typeOf, definitions);
      if (found) add({ kind: 'method', node: isNode(node.property) ? node.property : node, ...found });
    }
    const flags = flagsOf(node);
    if (flags) {
      const message = `The flag "${flags}" of RegExp is not part of ES5.`;
      add({ kind: 'global', node, name: 'RegExp', message, wayOut: '' });
    }
  }
  return uses.sort((a, b) => a.node.start - b.node.start);
}

function methodUse(
  { node, parent, key }: Place,
  typeOf: TypeOf,
  definitions: Definitions,
): Omit<LaterUse, 'kind' | 'node'> | undefined {
  const name = memberOf(node) ?? '';
  const method = LATER_METHODS.get(name);
  if (!method) return undefined;
  const type = typeOf(node.object);
  const { wayOut } = method;
  const shown = method.of[0] === 'regexp' ? name : `${name}()`;
  if (method.of.some((receiver) => receiver === type)) {
    if (definitions.prototypes.has(name)) return undefined;
    return { name, wayOut, message: `${plural(method.of.filter((r) => r === type))} have no ${shown} in ES5.` };
  }
  const isCall = parent?.type === 'CallExpression' && key === 'callee';
  if (type !== 'unknown' || !isCall || method.common || definitions.members.has(name)) return undefined;
  if (comesOfLibrary(node.object) || isSelection(name, parent)) return undefined;
  const message = `${plural(method.of)} have no ${shown} in ES5, and no script of this application defines one.`;
  return {
    name,
    wayOut,
    message,
    doubt: `If it is a method of another kind, a comment says so: handset-allow ${name}.`,
  };
}

const LIBRARY = /^(\$.*|_|jQuery|Zepto|Backbone|lodash|underscore)$/;

/** Whether an object is reached through a library: `$('#a').children()`, `this.$el`, `_.chain(list)`. */
function comesOfLibrary(object: unknown): boolean {
  for (let node = object; isNode(node); node = node.type === 'CallExpression' ? node.callee : node.object) {
    if (LIBRARY.test(identifierOf(node) ?? memberOf(node) ?? '')) return true;
  }
  return false;
}

/** `view.find('li')` finds elements by a selector, `posts.find({ id: 1 })` asks a store: arrays are asked by a function. */
function isSelection(name: string, call: TreeNode): boolean {
  if (!/^(find|flatMap)/.test(name)) return false;
  const [first] = Array.isArray(call.arguments) ? (call.arguments as unknown[]) : [];
  return !isNode(first) || first.type === 'Literal' || first.type === 'ObjectExpression';
}

function plural(receivers: readonly Receiver[]): string {
  const words = { array: 'arrays', string: 'strings', regexp: 'regular expressions' };
  const text = receivers.map((receiver) => words[receiver]).join(' and ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `Promise`, `Object.assign`: a name or a member of a global object, also by way of `window`. */
function globalName(node: unknown, declared: ReadonlySet<string>): string | undefined {
  const identifier = identifierOf(node);
  if (identifier !== undefined) return identifier;
  const member = memberOf(node);
  if (member === undefined || !isNode(node)) return undefined;
  const owner = globalName(node.object, declared);
  if (owner === undefined || owner.includes('.')) return undefined;
  return /^(window|self|globalThis)$/.test(owner) && !declared.has(owner) ? member : `${owner}.${member}`;
}

/** The names that this place asks for before they are used. */
function askedBy({ node, parent, key }: Place, nameHere: (node: unknown) => string | undefined): string[] {
  if (node.type === 'BinaryExpression' && node.operator === 'in') return [stringOf(node.left) ?? ''];
  const isQuestion =
    key === 'test' ||
    (parent?.type === 'LogicalExpression' && key === 'left') ||
    (parent?.type === 'UnaryExpression' && (parent.operator === '!' || parent.operator === 'typeof'));
  if (!isQuestion) return [];
  return [nameHere(node), memberOf(node)].filter((name) => name !== undefined);
}

function isTarget({ node, parent, key }: Place): boolean {
  return node.type === 'MemberExpression' && parent?.type === 'AssignmentExpression' && key === 'left';
}

/** Flags of `new RegExp('…', 'u')` beyond those of ES5; a literal with such flags is a fault of syntax. */
function flagsOf(node: TreeNode): string {
  if (!/^(New|Call)Expression$/.test(node.type) || identifierOf(node.callee) !== 'RegExp') return '';
  const [, flags] = Array.isArray(node.arguments) ? (node.arguments as unknown[]) : [];
  return (stringOf(flags) ?? '').replace(/[gim]/g, '');
}

function nameOf({ node }: Place): string {
  return String(node.name);
}
