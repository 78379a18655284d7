import { operations } from './generated/operations.ts';
import type { OperationName } from './generated/types.ts';

/** Where a request leads: the operation, and its labels still percent-encoded, as `decodeRequest` takes them. */
export interface RouteMatch {
  operation: OperationName;
  labels: Record<string, string>;
}

interface Node {
  fixed: Map<string, Node>;
  label: Node | undefined;
  /** By method, the operation that ends here and the names of the labels on the way. */
  ends: Map<string, { operation: OperationName; labels: string[] }>;
}

const newNode = (): Node => ({ fixed: new Map(), label: undefined, ends: new Map() });

const segmentsOf = (path: string): string[] => path.slice(1, path.endsWith('/') ? -1 : undefined).split('/');

const labelName = (segment: string): string | undefined => /^\{(\w+)\}$/.exec(segment)?.[1];

function buildTree(): Node {
  const root = newNode();
  for (const operation of Object.values(operations)) {
    let node = root;
    const labels: string[] = [];
    for (const segment of segmentsOf(operation.path)) {
      const name = labelName(segment);
      if (name === undefined) {
        const next = node.fixed.get(segment) ?? newNode();
        node.fixed.set(segment, next);
        node = next;
      } else {
        labels.push(name);
        node.label ??= newNode();
        node = node.label;
      }
    }
    if (node.ends.has(operation.method)) throw new Error(`${operation.name} has the route of another operation`);
    node.ends.set(operation.method, { operation: operation.name, labels });
  }
  return root;
}

let tree: Node | undefined;

/**
 * The operation for a method and a raw path (no query, not decoded), or undefined. A slash at the end makes no
 * difference. A fixed segment wins over a label; an empty segment is no label.
 */
export function matchRoute(method: string, path: string): RouteMatch | undefined {
  tree ??= buildTree();
  if (!path.startsWith('/')) return undefined;
  const segments = segmentsOf(path);
  const values: string[] = [];
  const end = find(tree, segments, 0, method, values);
  if (end === undefined) return undefined;
  const labels: Record<string, string> = {};
  for (const [index, name] of end.labels.entries()) labels[name] = values[index] ?? '';
  return { operation: end.operation, labels };
}

function find(
  node: Node,
  segments: string[],
  index: number,
  method: string,
  values: string[],
): ReturnType<Node['ends']['get']> {
  const segment = segments[index];
  if (segment === undefined) return node.ends.get(method);
  const fixed = node.fixed.get(segment);
  const found = fixed === undefined ? undefined : find(fixed, segments, index + 1, method, values);
  if (found !== undefined || node.label === undefined || segment === '') return found;
  values.push(segment);
  const end = find(node.label, segments, index + 1, method, values);
  if (end === undefined) values.pop();
  return end;
}
