import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** `expect` for a value that will be there in a moment; the machine may be busy. */
export function eventually<T>(value: () => T) {
  return expect.poll(value, { timeout: 20_000, interval: 20 });
}

/** Where a walk through the news reader may stop for a picture. */
export type Stop = (name: string) => Promise<void>;

/**
 * The same walk through the news reader, whether the page runs its scripts itself or a proxy does: list, lead, menu,
 * detail, text size, sections, search, settings, both themes.
 */
export async function walkThroughNews(page: Page, stop: Stop = async () => undefined): Promise<void> {
  const title = page.locator('#title');
  const stories = page.locator('.story');
  await eventually(() => stories.count()).toBe(5);
  await stop('list');

  await page.tap('#more-1');
  await page.locator('#lead-1').waitFor();
  await stop('lead');
  await page.tap('.options');
  await page.locator('#menu').waitFor();
  await stop('menu');
  await page.tap('.close');
  await page.locator('#menu').waitFor({ state: 'hidden' });

  await page.tap('.open:has-text("Bridge to close")');
  await page.locator('article').waitFor();
  await eventually(() => title.textContent()).toBe('Town');
  await stop('detail');
  await page.tap('text=Aa');
  await page.locator('article.size-2').waitFor();
  await page.tap('#save');
  await page.locator('#save:has-text("Saved")').waitFor();
  // The text size was changed by a shortcut; a round trip must not undo it.
  expect(await page.locator('article').getAttribute('class')).toBe('size-2');
  await page.tap('#next');
  await page.locator('h2:has-text("Apples")').waitFor();
  await page.tap('#back');
  await eventually(() => page.locator('.story.read').count()).toBe(2);
  expect(await page.locator('.story:has-text("Bridge") .meta').textContent()).toContain('saved');

  await page.tap('.tab:has-text("Nature")');
  await eventually(() => stories.count()).toBe(2);
  await page.tap('#search');
  await page.locator('#words').waitFor();
  await page.tap('.button:has-text("school")');
  expect(await page.inputValue('#words')).toBe('school');
  await page.tap('.button:has-text("Clear")');
  expect(await page.inputValue('#words')).toBe('');
  await page.fill('#words', 'harbour');
  await page.tap('.button:has-text("Find")');
  await eventually(() => stories.count()).toBe(2);
  expect(await page.inputValue('#words')).toBe('harbour');
  await stop('search');

  await page.tap('.options');
  await page.tap('#settings');
  await page.locator('#preferences').waitFor();
  await stop('settings');
  await page.tap('label:has-text("night")');
  await eventually(() => page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(23, 20, 29)');
  await page.selectOption('#size', { label: 'large' });
  await stop('settings-night');
  await page.locator('#images').tap();
  await page.tap('#back');
  await eventually(() => page.locator('.tab.on').textContent()).toBe('Nature');
  await page.tap('.tab:has-text("All")');
  await eventually(() => stories.count()).toBe(5);
  await stop('list-night');
  await page.tap('.open:has-text("ferry")');
  await page.locator('article.size-3').waitFor();
  expect(await page.locator('article img').count()).toBe(0);
}
