import { type control, errors } from '@agentplatform/contract';
import type { objectReader } from '../../../kernel/objects/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';

export interface DocumentsDeps {
  readObject: ReturnType<typeof objectReader>;
}

/** Of a document from a bucket; one in the call is bounded by the call. */
const MAX_BYTES = 32 * 1024 * 1024;

/** Reads the documents that targets are made of. */
export class Documents {
  readonly #deps: DocumentsDeps;

  constructor(deps: DocumentsDeps) {
    this.#deps = deps;
  }

  /**
   * The text of a document in a bucket, read with the caller's permissions. Undefined if the document is in the request itself. Rejects with
   * AccessDeniedException, and with ValidationException if there is no such document.
   */
  async read(schema: control.ApiSchemaConfiguration | undefined, ctx: RequestContext): Promise<string | undefined> {
    if (!schema?.s3) return undefined;
    const { uri = '', bucketOwnerAccountId = ctx.accountId } = schema.s3;
    const [, bucket = '', key = ''] = /^s3:\/\/([^/]+)\/(.+)$/.exec(uri) ?? [];
    const problem = (what: string): Error =>
      errors.invalidField('targetConfiguration.mcp', `names a document that ${what}: ${uri}`);
    if (bucket === '') throw problem('is not an s3:// location');
    await ctx.require('s3:GetObject', `arn:aws:s3:::${bucket}/${key}`);
    const own = bucketOwnerAccountId === ctx.accountId;
    const object = own ? await this.#deps.readObject(ctx.accountId, { bucket, key }, ctx.signal) : undefined;
    if (!object) throw problem('is not there');
    if (object.bytes > MAX_BYTES) {
      object.body.destroy();
      throw problem(`is larger than ${MAX_BYTES} bytes`);
    }
    const parts: Uint8Array[] = [];
    for await (const part of object.body) parts.push(part);
    return Buffer.concat(parts).toString('utf8');
  }
}
