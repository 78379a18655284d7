import { readFileSync, watch, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { launchChromium } from '../../packages/handset/src/browser/launch.ts';
import { EDITED, editedText } from './sample-app.ts';
import { startWatch } from './watching.ts';

const WAIT_MS = 10_000;
/** Between two saves, so that one does not meet the end of the other. */
const REST_MS = 120;

export interface Rebuilds {
  /** Milliseconds from the save to the written output, one for each save. */
  readonly toOutput: number[];
  /** Milliseconds from the save to the new script running in the page that was loaded again. */
  readonly toPage: number[];
}

/** Save one file again and again under `handset watch --server` with a page open in Chromium. */
export async function measureRebuilds(handset: string, root: string, saves: number): Promise<Rebuilds> {
  const watching = await startWatch(handset, root);
  const browser = await launchChromium({ headless: true, webSecurity: true, env: process.env });
  try {
    const page = await browser.newPage();
    let seen: (marker: number) => void = () => undefined;
    await page.exposeFunction('seen', (marker: number) => seen(marker));
    await page.goto(watching.url);
    const result: Rebuilds = { toOutput: [], toPage: [] };
    // The first saves warm both sides up and do not count.
    for (let marker = -3; marker < saves; marker += 1) {
      const shown = new Promise<number>((resolve) => {
        seen = (given) => {
          if (given === marker) resolve(performance.now());
        };
      });
      const written = whenWritten(path.join(root, 'public/javascripts'), 'app.js', `lastMarker = ${marker};`);
      const start = performance.now();
      writeFileSync(path.join(root, EDITED), editedText(marker));
      const output = (await bounded(written)) - start;
      const refreshed = (await bounded(shown)) - start;
      if (marker >= 0) {
        result.toOutput.push(output);
        result.toPage.push(refreshed);
      }
      await sleep(REST_MS);
    }
    return result;
  } finally {
    await browser.close();
    await watching.end();
  }
}

/** When a file of a folder holds a text: told by the system and not by asking again and again. */
function whenWritten(folder: string, file: string, text: string): Promise<number> {
  return new Promise((resolve) => {
    const watcher = watch(folder, (_event, name) => {
      if (name !== file) return;
      const now = performance.now();
      if (!readFileSync(path.join(folder, file), 'utf8').includes(text)) return;
      watcher.close();
      resolve(now);
    });
  });
}

async function bounded<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('No rebuild came')), WAIT_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
