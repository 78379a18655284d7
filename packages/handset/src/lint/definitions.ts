import type { Node } from 'acorn';
import { identifierOf, isNode, memberOf, placesOf, stringOf, type TreeNode } from './syntax-tree.ts';

/** What the scripts of an application bring themselves, so that its use needs nothing of the device. */
export interface Definitions {
  /** Global names: of the head of a script, or set on `window` or what stands for it. */
  readonly globals: Set<string>;
  /** Members of global objects, such as `Object.assign`. */
  readonly statics: Set<string>;
  /** Methods added to arrays, strings and their like. */
  readonly prototypes: Set<string>;
  /** Names of members of any object; a method that is called by such a name may be that one. */
  readonly members: Set<string>;
}

export function noDefinitions(): Definitions {
  return { globals: new Set(), statics: new Set(), prototypes: new Set(), members: new Set() };
}

const BUILT_IN = /^(Array|String|RegExp)$/;
const GLOBAL_OBJECT = /^(window|self|global|globalThis|root|top)$/;

/** Add what one script defines. A library (`vendor/`) may call the global object as it likes. */
export function addDefinitions(tree: Node, isLibrary: boolean, to: Definitions): void {
  const body = (tree as TreeNode).body;
  for (const statement of Array.isArray(body) ? body : []) addGlobals(statement, to);
  const define = (object: unknown, name: string): void => {
    to.members.add(name);
    const owner = identifierOf(object);
    if (owner !== undefined) to.statics.add(`${owner}.${name}`);
    if (isGlobalObject(object, isLibrary)) to.globals.add(name);
    if (memberOf(object) === 'prototype' && isNode(object) && BUILT_IN.test(identifierOf(object.object) ?? '')) {
      to.prototypes.add(name);
    }
  };
  for (const { node, parent } of placesOf(tree)) {
    switch (node.type) {
      case 'AssignmentExpression': {
        const name = memberOf(node.left);
        if (name !== undefined && isNode(node.left)) define(node.left.object, name);
        const variable = identifierOf(node.left);
        if (isLibrary && variable !== undefined) to.globals.add(variable);
        break;
      }
      case 'Property':
      case 'MethodDefinition': {
        const name = identifierOf(node.key) ?? stringOf(node.key);
        if (name !== undefined) to.members.add(name);
        break;
      }
      case 'Literal':
        // Libraries copy methods by lists of their names.
        if (parent?.type === 'ArrayExpression' && typeof node.value === 'string') to.members.add(node.value);
        break;
      case 'CallExpression': {
        // Object.defineProperty(Array.prototype, 'find', …), and extend(Array.prototype, { find: … }).
        const [object, second] = Array.isArray(node.arguments) ? (node.arguments as unknown[]) : [];
        const name = stringOf(second);
        if (name !== undefined && memberOf(node.callee) === 'defineProperty') define(object, name);
        for (const key of keysOf(second)) define(object, key);
        break;
      }
    }
  }
}

function isGlobalObject(object: unknown, isLibrary: boolean): boolean {
  if (isNode(object) && object.type === 'ThisExpression') return isLibrary;
  const name = identifierOf(object);
  return name !== undefined && (isLibrary || GLOBAL_OBJECT.test(name));
}

function keysOf(object: unknown): string[] {
  if (!isNode(object) || object.type !== 'ObjectExpression' || !Array.isArray(object.properties)) return [];
  return (object.properties as TreeNode[]).flatMap((p) => identifierOf(p.key) ?? stringOf(p.key) ?? []);
}

/** Names that stand at the head of a script, and what a script wrapped in `(function () { … }).call(this)` sets on it. */
function addGlobals(statement: unknown, to: Definitions): void {
  if (!isNode(statement)) return;
  if (statement.type === 'FunctionDeclaration' || statement.type === 'ClassDeclaration') {
    to.globals.add(identifierOf(statement.id) ?? '');
  } else if (statement.type === 'VariableDeclaration' && Array.isArray(statement.declarations)) {
    for (const { id } of statement.declarations as TreeNode[]) to.globals.add(identifierOf(id) ?? '');
  } else if (statement.type === 'ExpressionStatement') {
    addSetOnThis(statement.expression, to);
  }
}

function addSetOnThis(expression: unknown, to: Definitions): void {
  if (!isNode(expression)) return;
  if (expression.type === 'AssignmentExpression') {
    const name = memberOf(expression.left);
    const onThis =
      isNode(expression.left) && isNode(expression.left.object) && expression.left.object.type === 'ThisExpression';
    if (onThis && name !== undefined) to.globals.add(name);
    addSetOnThis(expression.right, to);
    return;
  }
  const wrapped =
    memberOf(expression.callee) === 'call' && isNode(expression.callee) ? expression.callee.object : undefined;
  const block = isNode(wrapped) && wrapped.type === 'FunctionExpression' ? wrapped.body : undefined;
  for (const inner of isNode(block) && Array.isArray(block.body) ? (block.body as unknown[]) : []) {
    if (isNode(inner) && inner.type === 'ExpressionStatement') addSetOnThis(inner.expression, to);
  }
}
