import type { data } from '@agentplatform/contract';
import type { CdpClient } from './cdp-client.ts';
import { type Key, keyOf, modifierBit } from './key-names.ts';

type Point = { x: number; y: number };
type Outcome = { status: 'SUCCESS' | 'FAILED'; error?: string; data?: Uint8Array };

/**
 * What InvokeBrowser does to the page in front (`front`, its target): as a person with a mouse and a keyboard would. An action that the browser cannot do is an
 * answer that says so, and no error of the operation.
 */
export async function invokeAction(
  action: data.BrowserAction,
  cdp: CdpClient,
  front: string | undefined,
): Promise<data.BrowserActionResult> {
  const outcome = await attempt(action, cdp, front).catch(
    (error: unknown): Outcome => ({ status: 'FAILED', error: error instanceof Error ? error.message : String(error) }),
  );
  if (action.mouseClick) return { mouseClick: outcome };
  if (action.mouseMove) return { mouseMove: outcome };
  if (action.mouseDrag) return { mouseDrag: outcome };
  if (action.mouseScroll) return { mouseScroll: outcome };
  if (action.keyType) return { keyType: outcome };
  if (action.keyPress) return { keyPress: outcome };
  if (action.keyShortcut) return { keyShortcut: outcome };
  return { screenshot: outcome };
}

async function attempt(action: data.BrowserAction, cdp: CdpClient, front: string | undefined): Promise<Outcome> {
  const page = await frontPage(cdp, front);
  const mouse = (type: string, at: Point, more: object = {}): Promise<unknown> =>
    cdp.send('Input.dispatchMouseEvent', { type, ...at, ...more }, page);
  if (action.mouseClick) {
    const { x, y, button = 'LEFT', clickCount = 1 } = action.mouseClick;
    const at = await within(cdp, page, { x, y });
    await mouse('mouseMoved', at);
    for (let click = 1; click <= clickCount; click += 1)
      for (const type of ['mousePressed', 'mouseReleased'])
        await mouse(type, at, { button: button.toLowerCase(), clickCount: click });
  } else if (action.mouseMove) {
    await mouse('mouseMoved', await within(cdp, page, action.mouseMove));
  } else if (action.mouseDrag) {
    const { startX, startY, endX, endY, button = 'LEFT' } = action.mouseDrag;
    const [from, to] = [
      await within(cdp, page, { x: startX, y: startY }),
      await within(cdp, page, { x: endX, y: endY }),
    ];
    const held = { button: button.toLowerCase(), clickCount: 1 };
    const bit = { buttons: { LEFT: 1, RIGHT: 2, MIDDLE: 4 }[button] };
    await mouse('mouseMoved', from);
    await mouse('mousePressed', from, held);
    for (const part of [0.25, 0.5, 0.75, 1])
      await mouse(
        'mouseMoved',
        { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part },
        { ...held, ...bit },
      );
    await mouse('mouseReleased', to, held);
  } else if (action.mouseScroll) {
    const { x, y, deltaX = 0, deltaY = 0 } = action.mouseScroll;
    await mouse('mouseWheel', await within(cdp, page, { x, y }), { deltaX, deltaY });
  } else if (action.keyType) {
    await type(cdp, page, action.keyType.text);
  } else if (action.keyPress) {
    const { key, presses = 1 } = action.keyPress;
    const known = knownKey(key);
    for (let press = 0; press < presses; press += 1) await strike(cdp, page, known, 0);
  } else if (action.keyShortcut) {
    await shortcut(cdp, page, action.keyShortcut.keys.map(knownKey));
  } else {
    const { data } = await cdp.send<{ data: string }>('Page.captureScreenshot', { format: 'png' }, page);
    return { status: 'SUCCESS', data: Buffer.from(data, 'base64') };
  }
  return { status: 'SUCCESS' };
}

/** The session of the browser's protocol with the page that is in front; a new one where there is none. */
async function frontPage(cdp: CdpClient, front: string | undefined): Promise<string> {
  const targetId =
    front ?? (await cdp.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' })).targetId;
  return (await cdp.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })).sessionId;
}

/** The point, where it is one of the page. Rejects with what it is not in. */
async function within(cdp: CdpClient, page: string, { x, y }: Point): Promise<Point> {
  const { cssVisualViewport } = await cdp.send<{ cssVisualViewport: { clientWidth: number; clientHeight: number } }>(
    'Page.getLayoutMetrics',
    {},
    page,
  );
  const { clientWidth, clientHeight } = cssVisualViewport;
  if (x >= 0 && y >= 0 && x <= clientWidth && y <= clientHeight) return { x, y };
  throw new Error(`(${x}, ${y}) is outside the page, which is ${clientWidth} × ${clientHeight}.`);
}

async function type(cdp: CdpClient, page: string, text: string): Promise<void> {
  for (const character of text) {
    const key = character === '\n' ? keyOf('enter') : character === '\t' ? keyOf('tab') : keyOf(character);
    // What no key of a keyboard writes is put in as a whole, as an input method does.
    if (key && key.code !== '') await strike(cdp, page, key, 0);
    else await cdp.send('Input.insertText', { text: character }, page);
  }
}

async function shortcut(cdp: CdpClient, page: string, keys: readonly Key[]): Promise<void> {
  let modifiers = 0;
  const held: Key[] = [];
  for (const key of keys) {
    const bit = modifierBit(key);
    if (bit === 0) {
      await strike(cdp, page, key, modifiers);
      continue;
    }
    modifiers |= bit;
    held.push(key);
    await keyEvent(cdp, page, 'rawKeyDown', key, modifiers);
  }
  for (const key of held.reverse()) {
    modifiers &= ~modifierBit(key);
    await keyEvent(cdp, page, 'keyUp', key, modifiers);
  }
}

async function strike(cdp: CdpClient, page: string, key: Key, modifiers: number): Promise<void> {
  // With Control, Alt or Meta a key gives a command and writes nothing.
  const writes = key.text !== undefined && (modifiers & 7) === 0;
  await keyEvent(cdp, page, writes ? 'keyDown' : 'rawKeyDown', key, modifiers, writes ? key.text : undefined);
  await keyEvent(cdp, page, 'keyUp', key, modifiers);
}

function keyEvent(
  cdp: CdpClient,
  page: string,
  type: string,
  { key, code, windowsVirtualKeyCode }: Key,
  modifiers: number,
  text?: string,
): Promise<unknown> {
  return cdp.send('Input.dispatchKeyEvent', { type, modifiers, key, code, windowsVirtualKeyCode, text }, page);
}

function knownKey(name: string): Key {
  const key = keyOf(name);
  if (key) return key;
  throw new Error(
    `There is no key "${name.slice(0, 40)}". Keys are single characters, or names such as enter, tab, escape, ctrl, f5.`,
  );
}
