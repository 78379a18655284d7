import { ServiceError } from '@agentplatform/contract';
import type { OperationCaller, OperationCalls } from '../../../kernel/http/index.ts';
import type { Json, JsonSchema } from '../../../kernel/models/index.ts';
import { BrowserPage } from './browser-page.ts';
import type { SessionsOfTools } from './sessions-of-tools.ts';
import type { Given, ServedTool, ToolServer } from './tool-server.ts';

/** A browser as the tool of one session of a harness. */
export interface BrowserPlace {
  /** What the harness calls it. */
  name: string;
  /** Its id. */
  browser: string;
  calls: Pick<OperationCalls, 'call'>;
  /** The harness's role, for this invocation. */
  caller: OperationCaller;
  sessions: SessionsOfTools;
  /** Of the harness's session. */
  session: string;
  /** Nodes of the page by the references of the last snapshot. */
  refs: Map<string, number>;
  /** Where the browser of a session is driven, and the signed headers of the handshake. */
  streamOf(sessionId: string): Promise<{ url: string; headers: Record<string, string> }>;
}

interface AxNode {
  ignored?: boolean;
  role?: { value?: string };
  name?: { value?: string };
  value?: { value?: unknown };
  backendDOMNodeId?: number;
}

/** Roles of the tree that somebody can act on. */
const INTERACTIVE = /^(button|link|textbox|searchbox|combobox|checkbox|radio|menuitem|tab|option|switch|slider)$/i;
const SHOWN = /^(heading|StaticText|image|cell|listitem|alert)$/i;
const MOST_LINES = 1_000;
/** How often a page is asked whether it has loaded, and for how long. */
const LOADED_WITHIN_MS = 20_000;

const TEXT = { type: 'string' } as const;
const REF = { type: 'string', description: 'A reference from the last snapshot, such as e5' } as const;

/** Tools that drive a browser by snapshots: a text of what can be acted on, each with a reference (spec: Browser operation). */
export function browser(place: BrowserPlace): ToolServer {
  const driver = new Driver(place);
  const tool = (
    name: string,
    description: string,
    properties: Record<string, JsonSchema>,
    run: (input: Record<string, string>) => Promise<string>,
  ): ServedTool => ({
    ...{ name, description },
    inputSchema: { type: 'object', required: Object.keys(properties), properties },
    run: async (input) => ({ status: 'success', content: [{ text: await run(textsIn(input)) }] }) satisfies Given,
  });
  return {
    ...{ name: place.name, type: 'server_tool_use', close: async () => driver.close() },
    tools: [
      tool(
        'browser_navigate',
        'Opens an address in the browser and gives a snapshot of the page.',
        { url: TEXT },
        ({ url = '' }) => driver.navigate(url),
      ),
      tool(
        'browser_snapshot',
        'Gives a snapshot of the page: what it says, and what can be clicked or filled in, with references.',
        {},
        () => driver.snapshot(),
      ),
      tool(
        'browser_click',
        'Clicks on an element of the last snapshot and gives a new snapshot.',
        { ref: REF },
        ({ ref = '' }) => driver.click(ref),
      ),
      tool(
        'browser_type',
        'Types text into an element of the last snapshot and gives a new snapshot. A line feed at the end presses Enter.',
        { ref: REF, text: TEXT },
        ({ ref = '', text = '' }) => driver.type(ref, text),
      ),
    ],
  };
}

class Driver {
  readonly #place: BrowserPlace;
  #page: Promise<BrowserPage> | undefined;

  constructor(place: BrowserPlace) {
    this.#place = place;
  }

  async navigate(url: string): Promise<string> {
    const page = await this.#open();
    const { errorText } = await page.call<{ errorText?: string }>('Page.navigate', { url });
    if (errorText !== undefined && errorText !== '') throw new Error(`The page did not open: ${errorText}`);
    return this.snapshot();
  }

  async snapshot(): Promise<string> {
    const page = await this.#open();
    await loaded(page);
    const { nodes } = await page.call<{ nodes: AxNode[] }>('Accessibility.getFullAXTree');
    const at = await evaluated(page, 'document.title + "\\n" + location.href');
    this.#place.refs.clear();
    const lines = nodes.flatMap((node) => this.#line(node)).slice(0, MOST_LINES);
    return [at, ...lines].join('\n');
  }

  async click(ref: string): Promise<string> {
    const page = await this.#open();
    const node = { backendNodeId: this.#nodeOf(ref) };
    await page.call('DOM.scrollIntoViewIfNeeded', node);
    const { model } = await page.call<{ model: { content: number[] } }>('DOM.getBoxModel', node);
    const [left = 0, top = 0, , , right = 0, bottom = 0] = model.content;
    const at = { x: (left + right) / 2, y: (top + bottom) / 2, button: 'left', clickCount: 1 };
    for (const type of ['mousePressed', 'mouseReleased']) await page.call('Input.dispatchMouseEvent', { type, ...at });
    return this.snapshot();
  }

  async type(ref: string, text: string): Promise<string> {
    const page = await this.#open();
    await page.call('DOM.focus', { backendNodeId: this.#nodeOf(ref) });
    await page.call('Input.insertText', { text: text.replace(/\n$/, '') });
    if (text.endsWith('\n'))
      for (const type of ['rawKeyDown', 'char', 'keyUp'])
        await page.call('Input.dispatchKeyEvent', { type, key: 'Enter', text: '\r', windowsVirtualKeyCode: 13 });
    return this.snapshot();
  }

  close(): void {
    this.#page?.then((page) => page.close()).catch(() => undefined);
  }

  #line({ ignored, role, name, value, backendDOMNodeId }: AxNode): string[] {
    const kind = role?.value ?? '';
    const said = name?.value ?? '';
    const acts = INTERACTIVE.test(kind) && backendDOMNodeId !== undefined;
    if (ignored || !(acts || (SHOWN.test(kind) && said !== ''))) return [];
    const filled = value?.value === undefined ? '' : `: ${String(value.value)}`;
    if (!acts) return [`${kind} "${said}"`];
    const ref = `e${this.#place.refs.size + 1}`;
    this.#place.refs.set(ref, backendDOMNodeId);
    return [`${kind} "${said}"${filled} [ref=${ref}]`];
  }

  #nodeOf(ref: string): number {
    const node = this.#place.refs.get(ref);
    if (node !== undefined) return node;
    throw new Error(`The last snapshot has no reference ${ref.slice(0, 20)}. Take a new one with browser_snapshot.`);
  }

  #open(): Promise<BrowserPage> {
    this.#page ??= this.#connect().catch((error: unknown) => {
      this.#page = undefined;
      throw error;
    });
    return this.#page;
  }

  #connect(): Promise<BrowserPage> {
    const { name, browser: browserIdentifier, calls, caller, sessions, session, streamOf } = this.#place;
    const start = async (): Promise<string> =>
      (await calls.call('StartBrowserSession', { browserIdentifier, name: 'harness' }, caller)).sessionId;
    return sessions.use(`${session}\n${name}`, start, hasEnded, async (sessionId) => {
      // Says whether it still lives, in the wire's words.
      const { status } = await calls.call('GetBrowserSession', { browserIdentifier, sessionId }, caller);
      if (status === 'TERMINATED') throw new Ended();
      const { url, headers } = await streamOf(sessionId);
      const page = await BrowserPage.open(url, headers);
      await page.call('Accessibility.enable');
      await page.call('DOM.enable');
      return page;
    });
  }
}

class Ended extends Error {}

function hasEnded(error: unknown): boolean {
  return error instanceof Ended || (error instanceof ServiceError && error.code === 'ResourceNotFoundException');
}

async function evaluated(page: BrowserPage, expression: string): Promise<string> {
  const { result } = await page.call<{ result: { value?: unknown } }>('Runtime.evaluate', { expression });
  return String(result.value ?? '');
}

async function loaded(page: BrowserPage): Promise<void> {
  // The page itself says when it has loaded; one that never does is shown as it is.
  const expression = `new Promise((done) => { if (document.readyState === 'complete') done(); else { addEventListener('load', () => done()); setTimeout(done, ${LOADED_WITHIN_MS}); } })`;
  await page.call('Runtime.evaluate', { expression, awaitPromise: true }).catch(() => undefined);
}

function textsIn(input: Json): Record<string, string> {
  const entries = typeof input === 'object' && input !== null && !Array.isArray(input) ? Object.entries(input) : [];
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}
