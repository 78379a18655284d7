import type { FastifyReply } from 'fastify';
import { ObjectError } from '../../kernel/objects/errors.ts';
import * as buckets from './buckets.ts';
import type { S3Context } from './context.ts';
import * as objects from './objects.ts';
import type { S3Target } from './request.ts';
import * as uploads from './uploads.ts';

type Handler = (ctx: S3Context) => Promise<FastifyReply>;

interface Route {
  method: string;
  on: 'service' | 'bucket' | 'object';
  /** Parameters of the query that must be there, with the value if one is given. */
  query?: Record<string, string | true>;
  handle: Handler;
}

/** The operations of S3 that are served; the first that fits is taken. */
const ROUTES: Route[] = [
  { method: 'GET', on: 'service', handle: buckets.listBuckets },
  { method: 'GET', on: 'bucket', query: { location: true }, handle: buckets.bucketLocation },
  { method: 'GET', on: 'bucket', query: { versioning: true }, handle: buckets.bucketVersioning },
  { method: 'GET', on: 'bucket', query: { uploads: true }, handle: uploads.listUploads },
  { method: 'GET', on: 'bucket', query: { 'list-type': '2' }, handle: buckets.listObjectsV2 },
  { method: 'GET', on: 'bucket', handle: buckets.listObjectsV1 },
  { method: 'PUT', on: 'bucket', handle: buckets.createBucket },
  { method: 'HEAD', on: 'bucket', handle: buckets.headBucket },
  { method: 'DELETE', on: 'bucket', handle: buckets.deleteBucket },
  { method: 'POST', on: 'bucket', query: { delete: true }, handle: buckets.deleteObjects },
  { method: 'GET', on: 'object', query: { uploadId: true }, handle: uploads.listParts },
  { method: 'GET', on: 'object', handle: objects.getObject },
  { method: 'HEAD', on: 'object', handle: objects.headObject },
  { method: 'PUT', on: 'object', query: { partNumber: true, uploadId: true }, handle: uploads.uploadPart },
  { method: 'PUT', on: 'object', handle: objects.putObject },
  { method: 'DELETE', on: 'object', query: { uploadId: true }, handle: uploads.abortUpload },
  { method: 'DELETE', on: 'object', handle: objects.deleteObject },
  { method: 'POST', on: 'object', query: { uploads: true }, handle: uploads.createUpload },
  { method: 'POST', on: 'object', query: { uploadId: true }, handle: uploads.completeUpload },
];

/** Other faces of a bucket or an object. To answer for the thing itself instead would be wrong, and with PUT destructive. */
const SUBRESOURCES = [
  ...['accelerate', 'acl', 'analytics', 'attributes', 'cors', 'encryption', 'intelligent-tiering', 'inventory'],
  ...['legal-hold', 'lifecycle', 'logging', 'metrics', 'notification', 'object-lock', 'ownershipControls', 'policy'],
  ...[
    'policyStatus',
    'publicAccessBlock',
    'replication',
    'requestPayment',
    'restore',
    'retention',
    'select',
    'tagging',
  ],
  ...['torrent', 'versions', 'website'],
];

/** Throws `NotImplemented` for what S3 has and this store has not, `MethodNotAllowed` for what nobody has. */
export function findRoute(method: string, target: S3Target): Handler {
  const on = target.key !== undefined ? 'object' : target.bucket !== undefined ? 'bucket' : 'service';
  const other = SUBRESOURCES.find((name) => target.query.has(name));
  const versioningPut = method !== 'GET' && target.query.has('versioning');
  if (other || versioningPut) {
    throw new ObjectError('NotImplemented', `The embedded object store does not serve ?${other ?? 'versioning'}.`);
  }
  const route = ROUTES.find((one) => one.method === method && one.on === on && fits(one.query, target.query));
  if (!route) throw new ObjectError('MethodNotAllowed', 'The specified method is not allowed against this resource.');
  return route.handle;
}

function fits(wanted: Route['query'], query: URLSearchParams): boolean {
  return Object.entries(wanted ?? {}).every(([name, value]) =>
    value === true ? query.has(name) : query.get(name) === value,
  );
}
