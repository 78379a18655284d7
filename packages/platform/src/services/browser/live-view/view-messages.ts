import {
  flag,
  list,
  number,
  object,
  oneOf,
  orAbsent,
  type Shape,
  storedText,
  text,
} from '../../../kernel/stored-shape.ts';

const LONGEST_TEXT = 1_000_000;
const MAX_TOUCHES = 10;
const some: Shape<string> = (value, at) => text(value, at).slice(0, LONGEST_TEXT);
const NOTHING = object({});
const ID = object({ id: some });

/** What the page of the live view says, by its type. Coordinates are those of the page that is watched, in CSS pixels. */
const MESSAGES = {
  /** It has drawn the last picture, and takes the next. */
  seen: NOTHING,
  control: object({ take: flag }),
  /** Asks for an address that only shows. */
  share: NOTHING,
  mouse: object({
    event: oneOf('mouseMoved', 'mousePressed', 'mouseReleased', 'mouseWheel'),
    x: number,
    y: number,
    button: oneOf('none', 'left', 'middle', 'right'),
    /** Those that are held: 1 left, 2 right, 4 middle. */
    buttons: number,
    clickCount: number,
    modifiers: number,
    deltaX: number,
    deltaY: number,
  }),
  key: object({
    event: oneOf('keyDown', 'rawKeyDown', 'keyUp'),
    key: some,
    code: some,
    windowsVirtualKeyCode: number,
    /** What it writes; absent for a key that writes nothing. */
    text: orAbsent(some),
    modifiers: number,
    location: number,
    autoRepeat: flag,
  }),
  touch: object({
    event: oneOf('touchStart', 'touchMove', 'touchEnd', 'touchCancel'),
    points: list(object({ x: number, y: number, id: number })),
  }),
  /** What was pasted, or written by an input method. */
  text: object({ text: some }),
  copy: NOTHING,
  tab: ID,
  'close-tab': ID,
  'new-tab': NOTHING,
  navigate: object({ url: some }),
  back: NOTHING,
  forward: NOTHING,
  reload: NOTHING,
  dialog: object({ accept: flag, text: orAbsent(some) }),
} as const;

type Type = keyof typeof MESSAGES;
export type ViewMessage = { [T in Type]: { type: T } & ReturnType<(typeof MESSAGES)[T]> }[Type];

const HEAD = object({ type: text });

/** Reads a message of the page. Throws `StoredShapeError` or a SyntaxError for what is none. */
export function readViewMessage(json: string): ViewMessage {
  const { type } = storedText(HEAD, json);
  if (!isType(type)) throw new TypeError('there is no such message');
  const message = { ...storedText<object>(MESSAGES[type], json), type } as ViewMessage;
  if (message.type === 'touch') return { ...message, points: message.points.slice(0, MAX_TOUCHES) };
  return message;
}

function isType(text: string): text is Type {
  return Object.hasOwn(MESSAGES, text);
}
