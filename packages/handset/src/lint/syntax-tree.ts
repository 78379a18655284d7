import type { Node } from 'acorn';

/** A node of a script with its fields; what a field holds is asked by type. */
export type TreeNode = Node & Record<string, unknown>;

/** A node, the one that holds it, and the name of the field in which it stands. */
export interface Place {
  readonly node: TreeNode;
  readonly parent: TreeNode | undefined;
  readonly key: string;
}

/** Every node of a tree; an outer one before those in it. */
export function* placesOf(tree: Node): Iterable<Place> {
  const open: Place[] = [{ node: tree as TreeNode, parent: undefined, key: '' }];
  for (let place = open.pop(); place; place = open.pop()) {
    yield place;
    for (const [key, child] of Object.entries(place.node)) {
      for (const node of Array.isArray(child) ? child : [child]) {
        if (isNode(node)) open.push({ node, parent: place.node, key });
      }
    }
  }
}

export function isNode(value: unknown): value is TreeNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** The name that a member expression asks for, as `a.b` or `a['b']`; undefined if it is computed or no such expression. */
export function memberOf(node: unknown): string | undefined {
  if (!isNode(node) || node.type !== 'MemberExpression' || !isNode(node.property)) return undefined;
  const { property } = node;
  if (!node.computed) return property.type === 'Identifier' ? String(property.name) : undefined;
  return stringOf(property);
}

export function identifierOf(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' ? String(node.name) : undefined;
}

export function stringOf(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
}

/** Whether this identifier gives a name to a variable, a function, a parameter or a caught error. */
export function isDeclaration({ parent, key }: Place): boolean {
  switch (parent?.type) {
    case 'VariableDeclarator':
      return key === 'id';
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return key === 'id' || key === 'params';
    case 'ClassDeclaration':
    case 'ClassExpression':
      return key === 'id';
    case 'CatchClause':
      return key === 'param';
    default:
      return false;
  }
}

/** Whether this identifier is a label, a property or a key, and so names no variable. */
export function isLabelOrKey({ parent, key }: Place): boolean {
  switch (parent?.type) {
    case 'MemberExpression':
      return key === 'property' && !parent.computed;
    case 'Property':
      return key === 'key' && !parent.computed;
    case 'LabeledStatement':
    case 'BreakStatement':
    case 'ContinueStatement':
      return key === 'label';
    default:
      return false;
  }
}
