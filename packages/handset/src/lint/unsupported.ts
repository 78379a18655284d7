import type { Node } from 'acorn';
import { browserScript } from '../server/browser-script.ts';
import type { Definitions } from './definitions.ts';
import { identifierOf, isDeclaration, memberOf, placesOf, stringOf, type TreeNode } from './syntax-tree.ts';

/** A use of what does not work behind the proxy, whatever version of the language it is. */
export interface UnsupportedUse {
  /** What an application writes to allow it: `confirm`, `touchstart`, `mwl.explode`. */
  readonly name: string;
  readonly node: Node;
  readonly message: string;
  readonly remedy: string;
}

const WINDOW = /^(window|self|globalThis)$/;
const LISTENS = /^(addEventListener|on|bind|delegate)$/;

/** Find what a script of the application asks of the phone, and neither the proxy nor the library of shortcuts carries. */
export function unsupportedUses(tree: Node, { globals, members }: Definitions): UnsupportedUse[] {
  const places = [...placesOf(tree)];
  const declared = new Set(places.filter(isDeclaration).map(({ node }) => String(node.name)));
  const globalOf = (node: unknown): string | undefined => {
    const name = identifierOf(node) ?? (WINDOW.test(ownerOf(node)) ? memberOf(node) : undefined);
    return name !== undefined && !declared.has(name) && !globals.has(name) ? name : undefined;
  };
  const uses: UnsupportedUse[] = [];
  for (const { node } of places) {
    const { callee } = node;
    const called = globalOf(callee) ?? '';
    if (node.type === 'NewExpression' && /^(Shared)?Worker$/.test(called)) {
      const remedy = 'Do its work in the page.';
      uses.push({ name: called, node, message: `${called} does not run behind the proxy.`, remedy });
    }
    if (node.type !== 'CallExpression') continue;
    if (/^(confirm|prompt)$/.test(called)) {
      const message = `${called}() is not carried to the phone: the answer is always no.`;
      uses.push({ name: called, node, message, remedy: 'Ask in the page itself.' });
    }
    const member = memberOf(callee) ?? '';
    const touch = LISTENS.test(member) ? touchEventOf(node) : undefined;
    if (touch !== undefined) {
      const message = `${touch} is not carried: the phone tells of taps, swipes and long presses.`;
      uses.push({ name: touch, node, message, remedy: 'Listen for click, or use handset.onSwipe.' });
    }
    if (ownerOf(callee) === 'mwl' && !declared.has('mwl') && !members.has(member) && !isKnownOfMwl(member)) {
      const message = `The library of shortcuts has no mwl.${member}().`;
      const remedy = 'Use one of its functions, or put a library that brings it into vendor/.';
      uses.push({ name: `mwl.${member}`, node, message, remedy });
    }
  }
  return uses.sort((a, b) => a.node.start - b.node.start);
}

function ownerOf(node: unknown): string {
  return memberOf(node) === undefined ? '' : (identifierOf((node as TreeNode).object) ?? '');
}

function touchEventOf({ arguments: given }: TreeNode): string | undefined {
  const [first] = Array.isArray(given) ? (given as unknown[]) : [];
  return /\btouch(start|move|end|cancel)\b/.exec(stringOf(first) ?? '')?.[0];
}

let functions: ReadonlySet<string> | undefined;
function isKnownOfMwl(name: string): boolean {
  if (/^add(Swipe|Nav)(Left|Right|Up|Down)Listener$/.test(name)) return true;
  const text = functions ? '' : browserScript('client/handset.js');
  functions ??= new Set([...text.matchAll(/^ +(?:shortcuts|mwl)\.(\w+) = /gm)].map(([, found = '']) => found));
  return functions.has(name);
}
