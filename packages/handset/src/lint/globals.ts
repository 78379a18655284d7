import type { Node } from 'acorn';

export interface GlobalUse {
  /** `Promise`, or `Object.assign` for a member of a global. */
  readonly name: string;
  readonly node: Node;
}

type AnyNode = Node & Record<string, unknown>;

/**
 * Names that an ES5 script uses and nowhere declares. A name declared in any function counts as declared everywhere:
 * a lint must not cry wolf. A name asked for by `typeof`, or guarded by a test of itself, does not count either.
 */
export function globalsOf(tree: Node): GlobalUse[] {
  const declared = new Set<string>();
  const asked = new Set<string>();
  const uses: GlobalUse[] = [];
  const open: [AnyNode, AnyNode | undefined, string][] = [[tree as AnyNode, undefined, '']];
  for (let next = open.pop(); next; next = open.pop()) {
    const [node, parent, key] = next;
    if (node.type === 'Identifier') {
      const name = String(node.name);
      if (isDeclaration(parent, key)) declared.add(name);
      else if (parent?.type === 'UnaryExpression' && parent.operator === 'typeof') asked.add(name);
      else if (!isLabelOrKey(parent, key)) uses.push({ name: memberName(name, parent, key), node });
    }
    for (const [childKey, child] of Object.entries(node)) {
      for (const one of Array.isArray(child) ? child : [child]) if (isNode(one)) open.push([one, node, childKey]);
    }
  }
  return uses
    .filter(({ name }) => !declared.has(name.split('.')[0] ?? '') && !asked.has(name.split('.')[0] ?? ''))
    .sort((a, b) => a.node.start - b.node.start);
}

function memberName(name: string, parent: AnyNode | undefined, key: string): string {
  if (parent?.type !== 'MemberExpression' || key !== 'object' || parent.computed) return name;
  const property = parent.property as { name?: string };
  return /^(Object|Array|Number|Math)$/.test(name) && property.name !== undefined ? `${name}.${property.name}` : name;
}

function isDeclaration(parent: AnyNode | undefined, key: string): boolean {
  switch (parent?.type) {
    case 'VariableDeclarator':
      return key === 'id';
    case 'FunctionDeclaration':
    case 'FunctionExpression':
      return key === 'id' || key === 'params';
    case 'CatchClause':
      return key === 'param';
    default:
      return false;
  }
}

function isLabelOrKey(parent: AnyNode | undefined, key: string): boolean {
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

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}
