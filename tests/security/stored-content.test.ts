import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useChromium } from '../../packages/handset/test/support/chromium.ts';
import { respond } from '../../packages/platform/src/kernel/http/respond.ts';
import { startS3, type TestS3 } from '../../packages/platform/src/services/s3/testing/s3-server.ts';
import { presignedUrl } from '../../packages/platform/src/services/s3/testing/signed-request.ts';

// What callers store and agents answer comes from the origin of the platform; a browser must never run it there.

const { browser } = useChromium();

const PAGE = '<html><title>inert</title><script>document.title = "ran at " + origin</script></html>';
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>document.documentElement.id = "ran"</script></svg>';

/** Whether a page that a browser is led to runs its script. */
async function runs(url: string): Promise<boolean> {
  const page = await browser().newPage();
  try {
    await page.goto(url);
    return (await page.evaluate<string>('document.title + (document.documentElement?.id ?? "")')).startsWith('ran');
  } finally {
    await page.close();
  }
}

describe('a document that a caller stored', () => {
  let s3: TestS3;
  beforeAll(async () => {
    s3 = await startS3();
  });
  afterAll(() => s3.stop());

  it.each([
    ['text/html', PAGE],
    ['image/svg+xml', SVG],
    ['application/xhtml+xml', PAGE.replace('<html>', '<html xmlns="http://www.w3.org/1999/xhtml">')],
  ])('of type "%s" is not run', async (type, body) => {
    const client = s3.client();
    await client.send(new CreateBucketCommand({ Bucket: 'pages' })).catch(() => undefined);
    await client.send(new PutObjectCommand({ Bucket: 'pages', Key: 'page', Body: body, ContentType: type }));
    const url = await presignedUrl(s3, '/pages/page');
    const answer = await fetch(url);
    expect(await answer.text()).toBe(body);
    expect(await runs(url)).toBe(false);
    // The channel itself is open: the same bytes, given out as any web server does, run.
    const plain = await serve((_req, res) => void res.setHeader('content-type', type).end(body));
    expect(await runs(plain.url)).toBe(true);
    plain.close();
  });
});

describe('a page that an agent answered', () => {
  it.each(['text/html', 'image/svg+xml'])('of type %s is not run', async (type) => {
    const body = type === 'text/html' ? PAGE : SVG;
    const guarded = await serve((_req, res) =>
      respond(res, { status: 200, headers: { 'content-type': type }, body }, 'id'),
    );
    const open = await serve((_req, res) => void res.setHeader('content-type', type).end(body));
    expect(await runs(open.url)).toBe(true);
    expect(await runs(guarded.url)).toBe(false);
    guarded.close();
    open.close();
  });

  it('of JSON costs no header more', async () => {
    const json = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' };
    const server = await serve((_req, res) => respond(res, json, 'id'));
    const { headers } = await fetch(server.url);
    expect(headers.get('content-security-policy')).toBeNull();
    server.close();
  });
});

async function serve(
  answer: (req: IncomingMessage, res: ServerResponse) => Promise<void> | void,
): Promise<{ url: string; close(): void }> {
  const server = createServer((req, res) => void answer(req, res)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
