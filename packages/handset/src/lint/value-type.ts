import type { Node } from 'acorn';
import type { Receiver } from './later-names.ts';
import { identifierOf, isDeclaration, isNode, memberOf, placesOf, type TreeNode } from './syntax-tree.ts';

/** What is known of a value without running anything; `other` is known to be none of the first three. */
export type ValueType = Receiver | 'other' | 'unknown';

/** Says what is known of an expression of one script. */
export type TypeOf = (node: unknown) => ValueType;

/** Methods that have one kind of result whatever they are called on. */
const RESULTS = new Map<string, ValueType>(
  Object.entries({
    ...fill('toString toLowerCase toUpperCase trim charAt substr substring toFixed join toLocaleString', 'string'),
    split: 'array',
  }),
);

/** What makes values of a kind: by `new`, and as its `prototype`. */
const MAKERS = new Map<string, ValueType>(Object.entries({ Array: 'array', String: 'string', RegExp: 'regexp' }));

/**
 * What the values of a script are, as far as the script itself shows it. A variable is known when all that is ever
 * assigned to its name is of one kind; a name that is a parameter anywhere is not.
 */
export function typesOf(tree: Node): TypeOf {
  const variables = new Map<string, (TreeNode | undefined)[]>();
  const assign = (name: string | undefined, value: unknown): void => {
    if (name === undefined) return;
    const values = variables.get(name) ?? [];
    values.push(isNode(value) ? value : undefined);
    variables.set(name, values);
  };
  for (const place of placesOf(tree)) {
    const { node, parent } = place;
    if (node.type === 'VariableDeclarator' && isNode(node.init)) assign(identifierOf(node.id), node.init);
    else if (node.type === 'AssignmentExpression') {
      assign(identifierOf(node.left), node.operator === '=' ? node.right : node.operator === '+=' ? node : undefined);
    } else if (node.type === 'ForInStatement') {
      assign(identifierOf(node.left), undefined);
    } else if (node.type === 'Identifier' && parent?.type !== 'VariableDeclarator' && isDeclaration(place)) {
      assign(String(node.name), undefined);
    }
  }

  const known = new Map<string, ValueType>();
  const variable = (name: string): ValueType => {
    const before = known.get(name);
    if (before !== undefined) return before;
    // For a variable that is made of itself.
    known.set(name, 'unknown');
    const values = (variables.get(name) ?? [undefined]).filter((value) => !isNothing(value));
    const [first = 'unknown', ...others] = values.map(typeOf);
    const type = others.every((other) => other === first) ? first : 'unknown';
    known.set(name, type);
    return type;
  };

  const typeOf: TypeOf = (node) => {
    if (!isNode(node)) return 'unknown';
    switch (node.type) {
      case 'Literal':
        return typeof node.value === 'string' ? 'string' : 'regex' in node ? 'regexp' : 'other';
      case 'ArrayExpression':
        return 'array';
      case 'ObjectExpression':
      case 'FunctionExpression':
      // The object at hand is the application's own.
      case 'ThisExpression':
        return 'other';
      case 'UnaryExpression':
        return node.operator === 'typeof' ? 'string' : 'other';
      case 'BinaryExpression':
        if (node.operator !== '+') return 'other';
        return [typeOf(node.left), typeOf(node.right)].includes('string') ? 'string' : 'unknown';
      case 'ConditionalExpression':
        return either(typeOf(node.consequent), typeOf(node.alternate));
      case 'Identifier':
        return variable(String(node.name));
      case 'MemberExpression':
        return (memberOf(node) === 'prototype' && MAKERS.get(identifierOf(node.object) ?? '')) || 'unknown';
      case 'NewExpression':
        return MAKERS.get(identifierOf(node.callee) ?? '') ?? 'other';
      case 'CallExpression':
        return RESULTS.get(memberOf(node.callee) ?? '') ?? 'unknown';
      default:
        return 'unknown';
    }
  };

  return typeOf;
}

/** `items != null ? items : []`: what stands in for it says what it is. */
function either(one: ValueType, other: ValueType): ValueType {
  if (one === other) return one;
  const known = one === 'unknown' ? other : other === 'unknown' ? one : 'unknown';
  return known === 'other' ? 'unknown' : known;
}

/** What is assigned to say that there is nothing yet. */
function isNothing(value: TreeNode | undefined): boolean {
  return value !== undefined && ((value.type === 'Literal' && value.value === null) || value.operator === 'void');
}

function fill(names: string, type: ValueType): Record<string, ValueType> {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]));
}
