// The part of jsdom that is used here; the types of the DOM itself are not loaded into this project.
declare module 'jsdom' {
  import type { EventEmitter } from 'node:events';
  import type { Context } from 'node:vm';

  export class VirtualConsole extends EventEmitter {}
  export class ResourceLoader {
    fetch(url: string, options?: object): Promise<Buffer> | null;
  }
  interface PageWindow {
    [name: string]: unknown;
    eval(code: string): unknown;
    close(): void;
    addEventListener(type: string, listener: () => void): void;
  }
  interface Options {
    readonly url: string;
    readonly runScripts: 'dangerously';
    readonly pretendToBeVisual: boolean;
    readonly resources: ResourceLoader;
    readonly virtualConsole: VirtualConsole;
    readonly beforeParse: (window: PageWindow) => void;
  }
  export class JSDOM {
    constructor(html: string, options: Options);
    readonly window: PageWindow;
    getInternalVMContext(): Context;
  }
}
