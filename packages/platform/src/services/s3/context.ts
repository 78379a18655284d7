import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Spool } from '../../kernel/auth/index.ts';
import type { KnownCall } from '../../kernel/http/index.ts';
import {
  type Bucket,
  ObjectError,
  type ObjectPlace,
  type ObjectStore,
  type Verified,
} from '../../kernel/objects/index.ts';
import { readBody, readText } from './body.ts';
import type { S3Target } from './request.ts';
import { readXml, type XmlElement } from './xml.ts';

export interface S3Deps {
  store: ObjectStore;
  spool: Spool;
  /** Largest object in one request, in bytes. */
  maxObjectBytes: number;
  region: string;
}

/** One request of somebody who may make it. */
export class S3Context {
  readonly deps: S3Deps;
  readonly target: S3Target;
  readonly #call: KnownCall;

  constructor(deps: S3Deps, call: KnownCall, target: S3Target) {
    this.deps = deps;
    this.#call = call;
    this.target = target;
  }

  get raw(): IncomingMessage {
    return this.#call.request.raw;
  }

  get reply(): FastifyReply {
    return this.#call.reply;
  }

  get query(): URLSearchParams {
    return this.target.query;
  }

  get store(): ObjectStore {
    return this.deps.store;
  }

  get place(): ObjectPlace {
    return { bucket: this.target.bucket ?? '', key: this.target.key ?? '' };
  }

  get accountId(): string {
    return this.#call.accountId;
  }

  /** The bucket, if it belongs to the caller's account; no policy opens another account's. */
  async bucket(name = this.place.bucket): Promise<Bucket> {
    const bucket = await this.store.bucket(name);
    if (!bucket) throw new ObjectError('NoSuchBucket', 'The specified bucket does not exist');
    if (bucket.owner !== this.accountId) throw new ObjectError('AccessDenied', 'Access Denied');
    return bucket;
  }

  /** The same for an object beside the one that the request names, on which the caller must be allowed the action, too. */
  async other(action: string, place: ObjectPlace): Promise<Bucket> {
    this.#call.require(action, arnOf(place));
    return this.bucket(place.bucket);
  }

  body(): Promise<Verified> {
    const { signedBody = { kind: 'unsigned' }, hold } = this.#call;
    return readBody(this.raw, signedBody, { spool: this.deps.spool, maxBytes: this.deps.maxObjectBytes, hold });
  }

  async xmlBody(): Promise<XmlElement> {
    return readXml(await readText(await this.body(), MAX_DOCUMENT_BYTES, this.#call.hold));
  }

  xml(document: string, status = 200): FastifyReply {
    return this.reply.code(status).header('content-type', 'application/xml').send(document);
  }
}

/** What policies call the bucket or, with a key, the object. */
export function arnOf({ bucket = '', key }: Pick<S3Target, 'bucket' | 'key'>): string {
  return `arn:aws:s3:::${bucket}${key === undefined ? '' : `/${key}`}`;
}

/** Room for the parts of an upload, 10,000 of them. */
const MAX_DOCUMENT_BYTES = 4 << 20;
