/** A node of the accessibility tree, as the browser's protocol has it. */
export interface AxNode {
  nodeId: string;
  ignored: boolean;
  role?: { value?: unknown };
  name?: { value?: unknown };
  value?: { value?: unknown };
  properties?: { name: string; value: { value?: unknown } }[];
  childIds?: string[];
  parentId?: string;
  backendDOMNodeId?: number;
}

/** One document of the page: its tree, and the documents that stand in its frames, by the element of the frame. */
export interface FrameTree {
  /** The session of the protocol that its nodes belong to. */
  session: string;
  nodes: AxNode[];
  frames: Map<number, FrameTree>;
}

/** Roles that a person can do something with. */
const INTERACTIVE = new Set(
  (
    'button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider spinbutton switch tab ' +
    'textbox treeitem DisclosureTriangle ColorWell Date DateTime InputTime'
  ).split(' '),
);
/** Roles that say nothing themselves: their children stand in their place. */
const SILENT = new Set('none generic InlineTextBox LineBreak RootWebArea presentation LayoutTable group'.split(' '));
const STATES = ['checked', 'selected', 'expanded', 'disabled', 'required', 'pressed', 'invalid', 'level'];
const MAX_NAME = 300;

/** The page as lines of text; `refOf` gives each element that a person can use its reference. */
export function snapshotLines(tree: FrameTree, refOf: (session: string, node: AxNode) => string): string[] {
  const lines: string[] = [];
  const walk = (frame: FrameTree, node: AxNode, depth: number, byId: Map<string, AxNode>, above: string): void => {
    const role = textOf(node.role);
    const name = textOf(node.name);
    const inside = node.backendDOMNodeId === undefined ? undefined : frame.frames.get(node.backendDOMNodeId);
    const spoken = !node.ignored && !SILENT.has(role) && (role !== 'StaticText' || (name !== '' && name !== above));
    if (spoken) {
      const ref = INTERACTIVE.has(role) || inside ? ` [ref=${refOf(frame.session, node)}]` : '';
      const shown = name === '' ? '' : ` ${JSON.stringify(name)}`;
      lines.push(`${'  '.repeat(depth)}- ${role === 'StaticText' ? 'text' : role}${shown}${states(node)}${ref}`);
    }
    const next = spoken ? depth + 1 : depth;
    for (const id of node.childIds ?? []) {
      const child = byId.get(id);
      if (child) walk(frame, child, next, byId, spoken ? name : above);
    }
    if (inside) begin(inside, next);
  };
  const begin = (frame: FrameTree, depth: number): void => {
    const byId = new Map(frame.nodes.map((node) => [node.nodeId, node]));
    for (const node of frame.nodes) if (node.parentId === undefined) walk(frame, node, depth, byId, '');
  };
  begin(tree, 0);
  return lines;
}

function states({ value, properties = [] }: AxNode): string {
  const said = properties.flatMap(({ name, value: { value: of } }) => {
    if (!STATES.includes(name) || of === false || of === 'false') return [];
    return of === true || of === 'true' ? [name] : [`${name}=${String(of)}`];
  });
  const text = textOf(value);
  const all = [...said, ...(text === '' ? [] : [`value=${JSON.stringify(text)}`])];
  return all.length === 0 ? '' : ` [${all.join(', ')}]`;
}

function textOf(of: { value?: unknown } | undefined): string {
  const { value } = of ?? {};
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  return String(value).replace(/\s+/g, ' ').trim().slice(0, MAX_NAME);
}
