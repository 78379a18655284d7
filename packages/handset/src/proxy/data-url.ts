import { mimeType } from '../server/mime.ts';
import { localFile, type ReadFile } from './local-file.ts';

const MAX_INLINE_IMAGE = 64 * 1024;
const PIXEL = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';

/** An image or a font of the application as an address that holds it; one empty pixel for anything else. */
export function dataUrl(url: string, folder: string, read: ReadFile): string {
  if (/^data:(image|font)\//i.test(url)) return url;
  const file = localFile(url, folder, read);
  const type = mimeType(file?.name ?? '');
  if (!file || file.bytes.length > MAX_INLINE_IMAGE || !/^(image|font)\//.test(type)) return PIXEL;
  return `data:${type};base64,${Buffer.from(file.bytes).toString('base64')}`;
}
