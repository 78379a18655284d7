import type { data } from '@agentplatform/contract';
import type { WebSocket } from 'ws';
import type { Clock } from '../../../kernel/clock.ts';
import type { BrowserHost } from '../browser-host.ts';
import type { CdpClient, CdpEvent } from '../cdp-client.ts';
import { FrontPage, type Picture } from '../front-page.ts';
import { doInput, selectedText } from './view-input.ts';
import { readViewMessage, type ViewMessage } from './view-messages.ts';

export interface ViewerDeps {
  socket: WebSocket;
  cdp: CdpClient;
  host: BrowserHost;
  /** A person who may only look on. */
  readOnly: boolean;
  automation: data.AutomationStreamStatus;
  /** Takes control, or gives it back, as UpdateBrowserStream does. */
  setAutomation(status: data.AutomationStreamStatus): Promise<void>;
  /** The fragment of an address that only shows. */
  share(): string;
  clock: Clock;
  signal: AbortSignal;
}

const PICTURES = { perSecond: 15, quality: 70 };
/** So many calls may wait for the browser (a dialog may be open); what a person does beyond is dropped. */
const MAX_WAITING = 64;
/** So many pictures may be on their way to the person. */
const MAX_UNSEEN = 2;
const MAX_FILES = 50;
/** Of what was said and not read, bytes; beyond it the connection ends, and the page may come back. */
const MAX_UNREAD_BYTES = 16 * 2 ** 20;

/**
 * One person who watches the page in front. Pictures are made by the browser only as fast as this person sees them: for a slow reader it makes
 * fewer, and nothing waits for him.
 */
export class Viewer {
  readonly #deps: ViewerDeps;
  readonly #front: FrontPage;
  #automation: data.AutomationStreamStatus;
  /** Pictures that were sent and not seen. */
  #unseen = 0;
  /** Pictures that the browser was not told of yet: while there are some it makes no more than one. */
  #untold: Picture[] = [];
  /** The field for files that a page wants to be filled. */
  #asking: { session: string; backendNodeId: number } | undefined;

  constructor(deps: ViewerDeps) {
    this.#deps = deps;
    this.#automation = deps.automation;
    this.#front = new FrontPage({
      ...deps,
      pictures: PICTURES,
      onPages: (tabs, front) => this.#say({ type: 'tabs', tabs, front: front ?? null }),
      onPicture: (picture) => this.#picture(picture),
      onEvent: (event) => this.#hear(event),
      onShown: (session) => this.#shown(session),
    });
  }

  /** Begins to show. Rejects when the browser is gone. */
  async start(): Promise<void> {
    const { cdp, socket } = this.#deps;
    cdp.listen((event) => this.#front.hear(event));
    socket.on('message', (message, isBinary) => {
      const done = isBinary ? this.#takeFiles(message as Buffer) : this.#take(String(message));
      done.catch((error: unknown) => this.#say({ type: 'problem', text: messageOf(error) }));
    });
    this.#tellControl();
    await this.#front.start();
  }

  /** Whether programs may drive the session has changed. */
  automationChanged(status: data.AutomationStreamStatus): void {
    this.#automation = status;
    this.#tellControl();
    const { session } = this.#front;
    if (session !== undefined) this.#askForFiles(session).catch(() => undefined);
  }

  stop(): void {
    this.#front.stop();
  }

  get #mayAct(): boolean {
    return !this.#deps.readOnly && this.#automation === 'DISABLED';
  }

  #tellControl(): void {
    const { readOnly } = this.#deps;
    this.#say({ type: 'control', readOnly, person: this.#automation === 'DISABLED' });
  }

  async #shown(session: string): Promise<void> {
    this.#asking = undefined;
    this.#untold = [];
    await this.#askForFiles(session);
  }

  /** Has the page ask this person for files, as long as he has control. */
  async #askForFiles(session: string): Promise<void> {
    if (this.#deps.readOnly) return;
    await this.#deps.cdp.send('Page.setInterceptFileChooserDialog', { enabled: this.#mayAct }, session);
  }

  #hear({ method, params, sessionId = '' }: CdpEvent): void {
    if (method === 'Page.javascriptDialogOpening')
      this.#say({ type: 'dialog', kind: String(params.type), text: String(params.message).slice(0, 2000) });
    else if (method === 'Page.javascriptDialogClosed') this.#say({ type: 'dialog', kind: null });
    else if (method === 'Page.fileChooserOpened' && typeof params.backendNodeId === 'number') {
      this.#asking = { session: sessionId, backendNodeId: params.backendNodeId };
      this.#say({ type: 'files', multiple: params.mode === 'selectMultiple' });
    }
  }

  #picture(picture: Picture): void {
    const { jpeg, width, height } = picture;
    const head = Buffer.from(JSON.stringify({ width, height }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(head.length);
    this.#unseen += 1;
    this.#send(Buffer.concat([length, head, jpeg]));
    this.#untold.push(picture);
    this.#tellBrowser();
  }

  /** Lets the browser make the next picture, where this person has seen enough of the last ones. */
  #tellBrowser(): void {
    if (this.#unseen < MAX_UNSEEN) this.#untold.shift()?.seen();
  }

  async #take(json: string): Promise<void> {
    const message = readViewMessage(json);
    if (message.type === 'seen') {
      this.#unseen = Math.max(0, this.#unseen - 1);
      return this.#tellBrowser();
    }
    if (this.#deps.readOnly) return this.#say({ type: 'problem', text: 'This address only shows the session.' });
    if (message.type === 'control') return this.#deps.setAutomation(message.take ? 'DISABLED' : 'ENABLED');
    if (message.type === 'share') return this.#say({ type: 'shared', fragment: this.#deps.share() });
    if (!this.#mayAct) return this.#say({ type: 'problem', text: 'A program drives the session. Take control first.' });
    if (this.#deps.cdp.waiting < MAX_WAITING) await this.#act(message);
  }

  async #act(message: Exclude<ViewMessage, { type: 'seen' | 'control' | 'share' }>): Promise<void> {
    const { cdp } = this.#deps;
    // While another page comes to the front there is none for a moment.
    if (this.#front.session === undefined) await this.#front.look();
    const { session } = this.#front;
    if (message.type === 'new-tab') await cdp.send('Target.createTarget', { url: 'about:blank' });
    else if (message.type === 'tab') await cdp.send('Target.activateTarget', { targetId: this.#known(message.id) });
    else if (message.type === 'close-tab') await cdp.send('Target.closeTarget', { targetId: this.#known(message.id) });
    else if (session === undefined) throw new Error('There is no page.');
    else if (message.type === 'copy') return this.#say({ type: 'copied', text: await selectedText(cdp, session) });
    else return doInput(message, cdp, session);
    await this.#front.look();
  }

  /** A page that was listed: targets that are none are nobody's to close. */
  #known(id: string): string {
    if (this.#front.pages.some((page) => page.id === id)) return id;
    throw new Error('There is no such page any more.');
  }

  /** Files for the field that asked. */
  async #takeFiles(message: Buffer): Promise<void> {
    const asking = this.#asking;
    if (!this.#mayAct || !asking) return;
    this.#asking = undefined;
    const { host, cdp, signal } = this.#deps;
    const files: string[] = [];
    for (const { name, content } of readFiles(message)) files.push(await host.upload(name, content, signal));
    await cdp.send('DOM.setFileInputFiles', { files, backendNodeId: asking.backendNodeId }, asking.session);
  }

  #say(message: object): void {
    this.#send(JSON.stringify(message));
  }

  /** Nothing waits without end for a person who does not read. */
  #send(message: string | Buffer): void {
    const { socket } = this.#deps;
    if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
    else if (socket.readyState === socket.OPEN) socket.send(message);
  }
}

/** Four bytes with the length of a list `[{name, size}]`, the list, the contents one behind the other. Throws for what is cut short. */
function readFiles(message: Buffer): { name: string; content: Buffer }[] {
  const headEnd = 4 + message.readUInt32BE(0);
  const head: unknown = JSON.parse(message.toString('utf8', 4, headEnd));
  if (!Array.isArray(head)) throw new Error('The files cannot be read.');
  let at = headEnd;
  return head.slice(0, MAX_FILES).map(({ name, size }) => {
    if (typeof name !== 'string' || typeof size !== 'number' || at + size > message.length)
      throw new Error('The files cannot be read.');
    const content = message.subarray(at, at + size);
    at += size;
    return { name: name.replaceAll('/', '_'), content };
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 500) : 'It failed.';
}
