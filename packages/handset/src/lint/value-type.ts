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
/** Methods of arrays and strings whose result is of the same kind. */
const SAME = new Map<string, readonly ValueType[]>(
  Object.entries({
    slice: ['array', 'string'],
    concat: ['array', 'string'],
    map: ['array'],
    filter: ['array'],
    sort: ['array'],
    reverse: ['array'],
    splice: ['array'],
    replace: ['string'],
  }),
);
const MAKERS = new Map<string, ValueType>(Object.entries({ String: 'string', Array: 'array', RegExp: 'regexp' }));
const STATICS = new Map<string, ValueType>(
  Object.entries({
    ...fill('Array.prototype Object.keys Object.getOwnPropertyNames', 'array'),
    ...fill('String.prototype String.fromCharCode JSON.stringify', 'string'),
    'RegExp.prototype': 'regexp',
  }),
);

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
      case 'LogicalExpression':
        return either(typeOf(node.left), typeOf(node.right));
      case 'ConditionalExpression':
        return either(typeOf(node.consequent), typeOf(node.alternate));
      case 'AssignmentExpression':
        return node.operator === '+='
          ? typeOf({ ...node, type: 'BinaryExpression', operator: '+' })
          : typeOf(node.right);
      case 'SequenceExpression':
        return typeOf(Array.isArray(node.expressions) ? node.expressions.at(-1) : undefined);
      case 'Identifier':
        return variable(String(node.name));
      case 'MemberExpression':
        return STATICS.get(fullName(node)) ?? 'unknown';
      case 'NewExpression':
        return MAKERS.get(identifierOf(node.callee) ?? '') ?? 'other';
      case 'CallExpression':
        return called(node.callee);
      default:
        return 'unknown';
    }
  };

  const called = (callee: unknown): ValueType => {
    const maker = identifierOf(callee);
    if (maker !== undefined) return MAKERS.get(maker) ?? 'unknown';
    const method = memberOf(callee);
    if (method === undefined || !isNode(callee)) return 'unknown';
    // Array.prototype.slice.call(arguments)
    if (method === 'call' || method === 'apply') return called(callee.object);
    const fixed = STATICS.get(fullName(callee)) ?? RESULTS.get(method);
    if (fixed !== undefined) return fixed;
    const receiver = typeOf(callee.object);
    return SAME.get(method)?.includes(receiver) ? receiver : 'unknown';
  };
  return typeOf;
}

/** `list || []`, `items != null ? items : []`: what stands in for it says what it is. */
function either(one: ValueType, other: ValueType): ValueType {
  if (one === other) return one;
  const known = one === 'unknown' ? other : other === 'unknown' ? one : 'unknown';
  return known === 'other' ? 'unknown' : known;
}

/** What is assigned to say that there is nothing yet. */
function isNothing(value: TreeNode | undefined): boolean {
  return value !== undefined && ((value.type === 'Literal' && value.value === null) || value.operator === 'void');
}

/** `Object.keys` of a member of a global object; empty for anything else. */
function fullName(node: unknown): string {
  const object = isNode(node) ? identifierOf(node.object) : undefined;
  const member = memberOf(node);
  return object === undefined || member === undefined ? '' : `${object}.${member}`;
}

function fill(names: string, type: ValueType): Record<string, ValueType> {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]));
}
