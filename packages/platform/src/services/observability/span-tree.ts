/** What of a span decides its place. */
export interface Placed {
  spanId: string;
  parentSpanId: string;
  startedUs: number;
}

export interface TreeNode<Span extends Placed> {
  span: Span;
  children: TreeNode<Span>[];
  /** Its parent is not there, or is below it: it stands at the top all the same. */
  detached?: true;
}

/** Spans as trees by their parents, in order of their beginning. Each is there once, whatever the parents say: without one, with one that is not there, in a circle. */
export function treeOf<Span extends Placed>(spans: readonly Span[]): TreeNode<Span>[] {
  const inOrder = [...spans].sort((a, b) => a.startedUs - b.startedUs || (a.spanId < b.spanId ? -1 : 1));
  const nodes = new Map<string, TreeNode<Span>>();
  for (const span of inOrder) if (!nodes.has(span.spanId)) nodes.set(span.spanId, { span, children: [] });
  const roots: TreeNode<Span>[] = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.span.parentSpanId);
    if (parent) parent.children.push(node);
    else roots.push(node.span.parentSpanId === '' ? node : Object.assign(node, { detached: true as const }));
  }
  const placed = new Set<TreeNode<Span>>();
  for (const root of roots) place(root, placed);
  // What no root leads to goes round in a circle: it is cut open before the span that began first.
  for (const node of nodes.values()) {
    if (placed.has(node)) continue;
    const parent = nodes.get(node.span.parentSpanId);
    if (parent) parent.children = parent.children.filter((child) => child !== node);
    roots.push(Object.assign(node, { detached: true as const }));
    place(node, placed);
  }
  return roots;
}

/** Notes a node and all below it. */
function place<Span extends Placed>(node: TreeNode<Span>, placed: Set<TreeNode<Span>>): void {
  const stack = [node];
  for (let next = stack.pop(); next; next = stack.pop()) {
    placed.add(next);
    stack.push(...next.children);
  }
}
