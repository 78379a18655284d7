/** A screen to preview on, in CSS pixels. */
export interface Device {
  readonly width: number;
  readonly height: number;
  readonly touch: boolean;
  readonly summary: string;
}

export const DEVICES = {
  touch: { width: 240, height: 400, touch: true, summary: 'full touch, upright' },
  'touch-landscape': { width: 400, height: 240, touch: true, summary: 'full touch, on its side' },
  'touch-and-type': { width: 240, height: 320, touch: true, summary: 'touch screen over a keypad' },
  keys: { width: 240, height: 320, touch: false, summary: 'keypad, upright' },
  'keys-landscape': { width: 320, height: 240, touch: false, summary: 'full keyboard, on its side' },
  'keys-small': { width: 128, height: 160, touch: false, summary: 'small screen with a keypad' },
} as const satisfies Record<string, Device>;

/**
 * What a browser context needs to show a page as `device` does: a layout viewport as wide as the screen, whatever a viewport
 * meta says or whether there is one. The devices know no other width, and Chromium's `isMobile` would lay out at 980 px.
 */
export function screenOf({ width, height, touch }: Device) {
  return { viewport: { width, height }, screen: { width, height }, deviceScaleFactor: 1, hasTouch: touch };
}

/** Argument for Chromium: bars beside a page would take width from it, and the devices draw none. */
export const NO_SCROLLBARS = '--hide-scrollbars';

export type DeviceName = keyof typeof DEVICES;

export const DEFAULT_DEVICE: DeviceName = 'touch';

export function isDeviceName(name: string): name is DeviceName {
  return Object.hasOwn(DEVICES, name);
}
