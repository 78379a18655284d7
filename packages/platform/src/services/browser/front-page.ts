import type { Clock } from '../../kernel/clock.ts';
import type { BrowserHost, OpenPage } from './browser-host.ts';
import type { CdpClient, CdpEvent } from './cdp-client.ts';

export interface FrontPageDeps {
  cdp: CdpClient;
  host: Pick<BrowserHost, 'pages'>;
  clock: Clock;
  signal: AbortSignal;
  /** Pictures a second, at most, and how they are made (JPEG, 0 to 100). */
  pictures: { perSecond: number; quality: number };
  /** The pages that are open, in a lasting order, and the one in front; told when they have changed. */
  onPages(pages: readonly OpenPage[], front: string | undefined): void;
  /** A picture of the page in front. The browser makes the next one after `seen` was called for it. */
  onPicture(picture: Picture): void;
  /** What the page in front says unasked, but for its pictures. */
  onEvent?(event: CdpEvent): void;
  /** Another page is in front; its session of the protocol. */
  onShown?(session: string): void | Promise<void>;
}

export interface Picture {
  jpeg: Buffer;
  /** Of the page, in CSS pixels. */
  width: number | undefined;
  height: number | undefined;
  seen(): void;
}

/** A page that is shown: its target, the session of the protocol with it, how many pictures of it there were. */
type Shown = { id: string; session: string; pictures: number };
type ScreencastFrame = { data: string; sessionId: number; metadata: { deviceWidth?: number; deviceHeight?: number } };

const MAX_SIZE = { maxWidth: 1920, maxHeight: 1080 };
/** A page that was brought to the front tells nobody: the browser is asked. */
const LOOK_EVERY_MS = 1000;

/** Follows the page in front of a browser and gives pictures of it, as fast as they are seen. */
export class FrontPage {
  readonly #deps: FrontPageDeps;
  readonly #stops = new Set<() => void>();
  #pages: OpenPage[] = [];
  #shown: Shown | undefined;
  #lastTold = 0;
  #looking: Promise<void> | undefined;

  constructor(deps: FrontPageDeps) {
    this.#deps = deps;
  }

  /** The session of the protocol with the page that is shown. */
  get session(): string | undefined {
    return this.#shown?.session;
  }

  get pages(): readonly OpenPage[] {
    return this.#pages;
  }

  /** Begins to show. Rejects when the browser is gone. */
  async start(): Promise<void> {
    await this.#deps.cdp.send('Target.setDiscoverTargets', { discover: true });
    await this.look().catch(() => undefined);
    this.#again();
  }

  stop(): void {
    for (const stop of this.#stops) stop();
    this.#stops.clear();
  }

  /** Hears what the browser says; whoever listens to it hands everything on. */
  hear(event: CdpEvent): void {
    const { method, params, sessionId } = event;
    if (method.startsWith('Target.target')) this.look().catch(() => undefined);
    const shown = this.#shown;
    if (!shown || sessionId !== shown.session) return;
    if (method === 'Page.screencastFrame') this.#picture(params as ScreencastFrame, shown);
    else this.#deps.onEvent?.(event);
  }

  /** Finds out which pages there are and shows the one in front. Those who ask at once share one look. */
  look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  #again(): void {
    const next = (): void => this.#again();
    this.#after(LOOK_EVERY_MS, () => void this.look().then(next, next));
  }

  #after(ms: number, work: () => void): void {
    const cancel = this.#deps.clock.after(ms, () => {
      this.#stops.delete(cancel);
      work();
    });
    this.#stops.add(cancel);
  }

  async #lookOnce(): Promise<void> {
    const { host, signal, onPages } = this.#deps;
    const found = await host.pages(signal);
    const front = found[0]?.id;
    // In an order of their own, for tabs that jump are no use.
    const known = new Map(this.#pages.map(({ id }, place) => [id, place]));
    const place = (id: string): number => known.get(id) ?? known.size;
    const pages = [...found].sort((one, other) => place(one.id) - place(other.id));
    const before = this.#shown?.id;
    if (front !== before || JSON.stringify(pages) !== JSON.stringify(this.#pages)) onPages(pages, front);
    this.#pages = pages;
    if (front !== before) await this.#show(front);
  }

  async #show(id: string | undefined): Promise<void> {
    const { cdp, pictures, onShown } = this.#deps;
    const before = this.#shown;
    this.#shown = undefined;
    if (before) await cdp.send('Target.detachFromTarget', { sessionId: before.session }).catch(() => undefined);
    if (id === undefined) return;
    const attach = { targetId: id, flatten: true };
    const { sessionId: session } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', attach);
    const shown = { id, session, pictures: 0 };
    this.#shown = shown;
    try {
      await cdp.send('Page.enable', {}, session);
      const wanted = { format: 'jpeg', quality: pictures.quality, ...MAX_SIZE };
      await cdp.send('Page.startScreencast', wanted, session);
      await onShown?.(session);
    } catch (error) {
      // A page that is only being made: the next look shows it.
      if (this.#shown === shown) this.#shown = undefined;
      throw error;
    }
    this.#stillPicture(shown).catch(() => undefined);
  }

  /** A page that does not move makes no picture of its own. */
  async #stillPicture(shown: Shown): Promise<void> {
    const { cdp, pictures, onPicture } = this.#deps;
    const wanted = { format: 'jpeg', quality: pictures.quality };
    const { cssVisualViewport: size } = await cdp.send<{
      cssVisualViewport: { clientWidth: number; clientHeight: number };
    }>('Page.getLayoutMetrics', {}, shown.session);
    const { data } = await cdp.send<{ data: string }>('Page.captureScreenshot', wanted, shown.session);
    if (this.#shown !== shown || shown.pictures > 0) return;
    const [width, height] = [size.clientWidth, size.clientHeight];
    onPicture({ jpeg: Buffer.from(data, 'base64'), width, height, seen: () => undefined });
  }

  #picture({ data, sessionId, metadata }: ScreencastFrame, shown: Shown): void {
    shown.pictures += 1;
    this.#deps.onPicture({
      jpeg: Buffer.from(data, 'base64'),
      width: metadata.deviceWidth,
      height: metadata.deviceHeight,
      seen: () => this.#tellBrowser(sessionId, shown),
    });
  }

  /** The browser makes the next picture: at once, or as soon as the time for one has come. */
  #tellBrowser(sessionId: number, shown: Shown): void {
    const { clock, cdp, pictures } = this.#deps;
    const wait = Math.max(0, this.#lastTold + 1000 / pictures.perSecond - clock.monotonic());
    this.#lastTold = clock.monotonic() + wait;
    this.#after(wait, () => {
      if (this.#shown === shown)
        cdp.send('Page.screencastFrameAck', { sessionId }, shown.session).catch(() => undefined);
    });
  }
}
