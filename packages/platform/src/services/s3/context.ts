import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Principal } from '../../kernel/auth/principal.ts';
import type { Authenticated } from '../../kernel/auth/sigv4.ts';
import type { Spool } from '../../kernel/auth/spool.ts';
import type { Verified } from '../../kernel/objects/checksums.ts';
import { ObjectError } from '../../kernel/objects/errors.ts';
import type { Bucket, ObjectPlace, ObjectStore } from '../../kernel/objects/object-store.ts';
import { readBody, readText } from './body.ts';
import type { S3Target } from './request.ts';
import { readXml, type XmlElement } from './xml.ts';

export interface S3Deps {
  store: ObjectStore;
  /** Establishes who signed the request (service `s3`). Throws `ServiceError`. */
  authenticate(raw: IncomingMessage): Promise<Authenticated> | Authenticated;
  /** Throws `AccessDeniedException` unless `principal` may do `action` (e.g. `s3:GetObject`) on `resource`. */
  authorize(request: {
    principal: Principal;
    action: string;
    resource: string;
    sourceIp: string | undefined;
  }): Promise<void> | void;
  spool: Spool;
  /** Largest object in one request, in bytes. */
  maxObjectBytes: number;
  region: string;
}

/** One request on its way through the S3 door. */
export class S3Context {
  readonly deps: S3Deps;
  readonly raw: IncomingMessage;
  readonly reply: FastifyReply;
  readonly target: S3Target;
  readonly authenticated: Authenticated;

  constructor(deps: S3Deps, raw: IncomingMessage, reply: FastifyReply, target: S3Target, authenticated: Authenticated) {
    this.deps = deps;
    this.raw = raw;
    this.reply = reply;
    this.target = target;
    this.authenticated = authenticated;
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
    return this.authenticated.principal.accountId;
  }

  /** Throws unless the caller may do `action` on the bucket or, with a key, on the object. */
  async allow(action: string, bucket: string, key?: string): Promise<void> {
    const resource = `arn:aws:s3:::${bucket}${key === undefined ? '' : `/${key}`}`;
    const { principal } = this.authenticated;
    await this.deps.authorize({ principal, action, resource, sourceIp: this.raw.socket.remoteAddress });
  }

  /** The bucket, if it belongs to the caller's account and the caller may do `action`; a policy cannot open another account's. */
  async open(action: string, place: { bucket: string; key?: string } = this.#ownPlace()): Promise<Bucket> {
    await this.allow(action, place.bucket, place.key);
    const bucket = await this.store.bucket(place.bucket);
    if (!bucket) throw new ObjectError('NoSuchBucket', 'The specified bucket does not exist');
    if (bucket.owner !== this.accountId) throw new ObjectError('AccessDenied', 'Access Denied');
    return bucket;
  }

  body(): Promise<Verified> {
    return readBody(this.raw, this.authenticated.body, { spool: this.deps.spool, maxBytes: this.deps.maxObjectBytes });
  }

  async xmlBody(): Promise<XmlElement> {
    return readXml(await readText(await this.body(), MAX_DOCUMENT_BYTES));
  }

  xml(document: string, status = 200): FastifyReply {
    return this.reply.code(status).header('content-type', 'application/xml').send(document);
  }

  #ownPlace(): { bucket: string; key?: string } {
    return { bucket: this.target.bucket ?? '', key: this.target.key };
  }
}

/** Room for the parts of an upload, 10,000 of them. */
const MAX_DOCUMENT_BYTES = 4 << 20;
