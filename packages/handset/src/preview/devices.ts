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

export type DeviceName = keyof typeof DEVICES;

export const DEFAULT_DEVICE: DeviceName = 'touch';

export function isDeviceName(name: string): name is DeviceName {
  return Object.hasOwn(DEVICES, name);
}
