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
    if (parent && !isWithin(parent, node, nodes)) parent.children.push(node);
    else roots.push(node.span.parentSpanId === '' ? node : Object.assign(node, { detached: true as const }));
  }
  return roots;
}

/** Whether going up from `node` leads to `above`: to hang `above` below it would close a circle. */
function isWithin<Span extends Placed>(
  node: TreeNode<Span>,
  above: TreeNode<Span>,
  nodes: ReadonlyMap<string, TreeNode<Span>>,
): boolean {
  const seen = new Set<string>();
  for (let at: TreeNode<Span> | undefined = node; at; at = nodes.get(at.span.parentSpanId)) {
    if (at === above) return true;
    if (seen.has(at.span.spanId)) return false;
    seen.add(at.span.spanId);
  }
  return false;
}
