import { list, object, text, wire } from '../../../kernel/stored-shape.ts';
import type { CdpClient } from '../cdp-client.ts';

/** What a browser keeps of the sites that it has visited. */
export interface ProfileState {
  /** As the browser's protocol has them (`Storage.getCookies`), those of the session too. */
  cookies: object[];
  /** Local storage: names and values in turn, by origin. */
  storage: { origin: string; items: string[] }[];
}

export const PROFILE_STATE = object<ProfileState>({
  cookies: list(wire<object>()),
  storage: list(object({ origin: text, items: list(text) })),
});

const MAX_ORIGINS = 200;
/** What `Storage.setCookies` takes of what `Storage.getCookies` gives. */
const OF_COOKIES = [
  ...['name', 'value', 'domain', 'path', 'secure', 'httpOnly', 'sameSite', 'expires', 'priority', 'sourceScheme'],
  ...['sourcePort', 'partitionKey'],
];
const READ = 'JSON.stringify(Object.entries(localStorage).flat())';

type Evaluated = { result: { value?: unknown } };
type Cookies = { cookies: Record<string, unknown>[] };

/** What the browser keeps, in its usual context: all cookies, and local storage of these origins. Rejects with what the browser says against it. */
export async function readState(cdp: CdpClient, origins: readonly string[]): Promise<ProfileState> {
  const { cookies } = await cdp.send<Cookies>('Storage.getCookies');
  const storage: ProfileState['storage'] = [];
  await atEach(cdp, origins.slice(0, MAX_ORIGINS), async (origin, page) => {
    const { result } = await cdp.send<Evaluated>('Runtime.evaluate', { expression: READ }, page);
    const items: unknown = JSON.parse(String(result.value));
    if (Array.isArray(items) && items.length > 0) storage.push({ origin, items: items.map(String) });
  });
  return { cookies, storage };
}

/** Gives it to a browser that has visited nothing. */
export async function writeState(cdp: CdpClient, { cookies, storage }: ProfileState): Promise<void> {
  if (cookies.length > 0) await cdp.send('Storage.setCookies', { cookies: cookies.map(forSetting) });
  const items = new Map(storage.map((one) => [one.origin, one.items]));
  await atEach(cdp, [...items.keys()], async (origin, page) => {
    const given = JSON.stringify(items.get(origin));
    const expression = `for (let given = ${given}, i = 0; i + 1 < given.length; i += 2) localStorage.setItem(given[i], given[i + 1])`;
    await cdp.send('Runtime.evaluate', { expression }, page);
  });
}

function forSetting(cookie: object): object {
  const known = Object.entries(cookie).filter(([name]) => OF_COOKIES.includes(name));
  // One that ends with the session has -1, which would end it at once.
  return Object.fromEntries(known.filter(([name, value]) => name !== 'expires' || Number(value) > 0));
}

/** Does something on an empty page of each origin, which nobody has asked a server for. */
async function atEach(
  cdp: CdpClient,
  origins: readonly string[],
  visit: (origin: string, page: string) => Promise<void>,
): Promise<void> {
  if (origins.length === 0) return;
  const made = { url: 'about:blank', background: true, hidden: true };
  const { targetId } = await cdp.send<{ targetId: string }>('Target.createTarget', made);
  try {
    const { sessionId: page } = await cdp.send<{ sessionId: string }>('Target.attachToTarget', {
      targetId,
      flatten: true,
    });
    cdp.listen(({ method, params, sessionId }) => {
      if (method !== 'Fetch.requestPaused' || sessionId !== page) return;
      const responseHeaders = [{ name: 'content-type', value: 'text/html' }];
      const answer = { requestId: params.requestId, responseCode: 200, responseHeaders, body: '' };
      cdp.send('Fetch.fulfillRequest', answer, page).catch(() => undefined);
    });
    await cdp.send('Network.enable', {}, page);
    await cdp.send('Network.setBypassServiceWorker', { bypass: true }, page);
    await cdp.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, page);
    for (const origin of origins) {
      const { errorText } = await cdp.send<{ errorText?: string }>('Page.navigate', { url: `${origin}/` }, page);
      if (errorText === undefined) await visit(origin, page);
    }
  } finally {
    await cdp.send('Target.closeTarget', { targetId }).catch(() => undefined);
  }
}
