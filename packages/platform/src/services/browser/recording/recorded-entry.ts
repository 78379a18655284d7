import type { CdpEvent } from '../cdp-client.ts';

/** One thing of a recording, with when it was, in milliseconds since the epoch. */
export type RecordedEntry = { at: number } & (
  | { kind: 'picture'; width: number | undefined; height: number | undefined /** Base64. */; jpeg: string }
  /** Another page is in front, or it says something else of itself. */
  | { kind: 'page'; title: string; url: string }
  | { kind: 'navigation'; url: string }
  | { kind: 'request'; id: string; method: string; url: string }
  | { kind: 'response'; id: string; status: number | undefined /** Why there was none. */; failed: string | undefined }
  | { kind: 'console'; level: string; text: string }
  | { kind: 'dialog'; type: string; text: string }
  /** What a program asked the browser to do. */
  | { kind: 'action'; method: string; what: string }
);

const MAX_TEXT = 2000;
const short = (value: unknown): string => (typeof value === 'string' ? value : '').slice(0, MAX_TEXT);
/** An address without the name and the password that may stand in it. */
export const addressOf = (value: unknown): string => short(value).replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1');
/** A script up to its first text: what it writes into a page is written there as what is typed is. */
const script = (value: unknown): string =>
  short(value)
    .slice(0, 200)
    .replace(/["'`].*/s, '…');

interface Known {
  frame?: { parentId?: unknown; url?: unknown };
  request?: { method?: unknown; url?: unknown };
  response?: { status?: unknown };
  requestId?: unknown;
  errorText?: unknown;
  type?: unknown;
  args?: { value?: unknown; description?: unknown }[];
  message?: unknown;
  entry?: { level?: unknown; text?: unknown };
  exceptionDetails?: { text?: unknown; exception?: { description?: unknown } };
}

/** What of an event of the browser's protocol goes into a recording; undefined for what does not. */
export function entryOf({ method, params }: CdpEvent, at: number): RecordedEntry | undefined {
  const of: Known = params;
  switch (method) {
    case 'Page.frameNavigated':
      return of.frame?.parentId === undefined ? { kind: 'navigation', at, url: addressOf(of.frame?.url) } : undefined;
    case 'Network.requestWillBeSent': {
      const { method: verb, url } = of.request ?? {};
      return { kind: 'request', at, id: short(of.requestId), method: short(verb), url: addressOf(url) };
    }
    case 'Network.responseReceived': {
      const status = typeof of.response?.status === 'number' ? of.response.status : undefined;
      return { kind: 'response', at, id: short(of.requestId), status, failed: undefined };
    }
    case 'Network.loadingFailed':
      return { kind: 'response', at, id: short(of.requestId), status: undefined, failed: short(of.errorText) };
    case 'Runtime.consoleAPICalled': {
      const text = (of.args ?? []).map(({ value, description }) => String(value ?? description ?? '')).join(' ');
      return { kind: 'console', at, level: short(of.type), text: short(text) };
    }
    case 'Runtime.exceptionThrown': {
      const { text, exception } = of.exceptionDetails ?? {};
      return { kind: 'console', at, level: 'error', text: short(exception?.description ?? text) };
    }
    case 'Log.entryAdded':
      return { kind: 'console', at, level: short(of.entry?.level), text: short(of.entry?.text) };
    case 'Page.javascriptDialogOpening':
      return { kind: 'dialog', at, type: short(of.type), text: short(of.message) };
    default:
      return undefined;
  }
}

/** Domains of the protocol by which a program acts; what it only asks is no action. */
const ACTIONS =
  /^(Input\.(dispatch|insert)|Page\.(navigate|reload|bringToFront|close|handleJavaScriptDialog|captureScreenshot|printToPDF)|Target\.(createTarget|closeTarget|activateTarget)|Runtime\.(evaluate|callFunctionOn)|DOM\.setFileInputFiles|Storage\.setCookies|Network\.setCookies?$)/;

/** What a program's message to the browser asks for; undefined for what is no action. Texts that are typed are not kept. */
export function actionOf(message: string, at: number): RecordedEntry | undefined {
  const { method, params } = readMessage(message);
  if (typeof method !== 'string' || !ACTIONS.test(method)) return undefined;
  const { type, x, y, button, url, expression, functionDeclaration, text } = params;
  const parts = method.startsWith('Input.')
    ? [type, x !== undefined && `(${x}, ${y})`, button, typeof text === 'string' && `${text.length} characters`]
    : [addressOf(url), script(expression ?? functionDeclaration)];
  const what = parts.filter((part) => part !== undefined && part !== false && part !== '').join(' ');
  return { kind: 'action', at, method, what: short(what) };
}

/** Whatever a program sends is answered by the browser: what is no message is no action. */
function readMessage(json: string): { method?: unknown; params: Record<string, unknown> } {
  try {
    const { method, params } = JSON.parse(json) as { method?: unknown; params?: Record<string, unknown> | null };
    return { method, params: params ?? {} };
  } catch {
    return { params: {} };
  }
}
