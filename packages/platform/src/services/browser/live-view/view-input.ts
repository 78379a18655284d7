import type { CdpClient } from '../cdp-client.ts';
import type { ViewMessage } from './view-messages.ts';

/** What a person does to the page. */
export type PersonsInput = Extract<
  ViewMessage,
  { type: 'mouse' | 'key' | 'touch' | 'text' | 'navigate' | 'back' | 'forward' | 'reload' | 'dialog' }
>;

/** What is marked in the field or the page that has the focus. */
const SELECTED = `(() => {
  const active = document.activeElement;
  if (active && typeof active.selectionStart === 'number') return active.value.slice(active.selectionStart, active.selectionEnd);
  return String(getSelection());
})()`;

/** Does it to the page of that session of the protocol. Rejects with what the browser says against it. */
export async function doInput(message: PersonsInput, cdp: CdpClient, page: string): Promise<void> {
  switch (message.type) {
    case 'mouse': {
      const { event: type, x, y, button, buttons, clickCount, modifiers, deltaX, deltaY } = message;
      const wheel = type === 'mouseWheel' ? { deltaX, deltaY } : {};
      const params = { type, x, y, button, buttons, clickCount, modifiers, ...wheel };
      await cdp.send('Input.dispatchMouseEvent', params, page);
      return;
    }
    case 'key': {
      const { event, key, code, windowsVirtualKeyCode, text, modifiers, location, autoRepeat } = message;
      const params = { type: event, key, code, windowsVirtualKeyCode, text, modifiers, location, autoRepeat };
      await cdp.send('Input.dispatchKeyEvent', params, page);
      return;
    }
    case 'touch':
      await cdp.send('Input.dispatchTouchEvent', { type: message.event, touchPoints: message.points }, page);
      return;
    case 'text':
      await cdp.send('Input.insertText', { text: message.text }, page);
      return;
    case 'navigate': {
      const url = /^[a-z][a-z0-9+.-]*:/i.test(message.url) ? message.url : `https://${message.url}`;
      const { errorText } = await cdp.send<{ errorText?: string }>('Page.navigate', { url }, page);
      if (errorText !== undefined) throw new Error(`The page did not open: ${errorText}`);
      return;
    }
    case 'reload':
      await cdp.send('Page.reload', {}, page);
      return;
    case 'dialog':
      await cdp.send('Page.handleJavaScriptDialog', { accept: message.accept, promptText: message.text }, page);
      return;
    default:
      await walk(cdp, page, message.type === 'back' ? -1 : 1);
  }
}

/** The text that is marked. */
export async function selectedText(cdp: CdpClient, page: string): Promise<string> {
  const { result } = await cdp.send<{ result: { value?: unknown } }>(
    'Runtime.evaluate',
    { expression: SELECTED },
    page,
  );
  return typeof result.value === 'string' ? result.value : '';
}

/** Back and forth in the page's history. */
async function walk(cdp: CdpClient, page: string, by: number): Promise<void> {
  const { currentIndex, entries } = await cdp.send<{ currentIndex: number; entries: { id: number }[] }>(
    'Page.getNavigationHistory',
    {},
    page,
  );
  const entry = entries[currentIndex + by];
  if (entry) await cdp.send('Page.navigateToHistoryEntry', { entryId: entry.id }, page);
}
