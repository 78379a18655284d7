import type { FastifyReply } from 'fastify';
import { ObjectError } from '../../kernel/objects/index.ts';
import * as buckets from './buckets.ts';
import type { S3Context } from './context.ts';
import * as objects from './objects.ts';
import type { S3Target } from './request.ts';
import * as uploads from './uploads.ts';

type Handler = (ctx: S3Context) => Promise<FastifyReply>;

export interface S3Operation {
  method: string;
  on: 'service' | 'bucket' | 'object';
  /** Parameters of the query that must be there, with the value if one is given. */
  query?: Record<string, string | true>;
  /** What the caller must be allowed on what the path names; `each`: what the body names is asked for one by one. */
  action: string;
  handle: Handler;
}

/** The operations of S3 that are served; the first that fits is taken. */
const OPERATIONS: S3Operation[] = [
  { method: 'GET', on: 'service', action: 's3:ListAllMyBuckets', handle: buckets.listBuckets },
  {
    method: 'GET',
    on: 'bucket',
    query: { location: true },
    action: 's3:GetBucketLocation',
    handle: buckets.bucketLocation,
  },
  {
    method: 'GET',
    on: 'bucket',
    query: { versioning: true },
    action: 's3:GetBucketVersioning',
    handle: buckets.bucketVersioning,
  },
  {
    method: 'GET',
    on: 'bucket',
    query: { uploads: true },
    action: 's3:ListBucketMultipartUploads',
    handle: uploads.listUploads,
  },
  { method: 'GET', on: 'bucket', query: { 'list-type': '2' }, action: 's3:ListBucket', handle: buckets.listObjectsV2 },
  { method: 'GET', on: 'bucket', action: 's3:ListBucket', handle: buckets.listObjectsV1 },
  { method: 'PUT', on: 'bucket', action: 's3:CreateBucket', handle: buckets.createBucket },
  { method: 'HEAD', on: 'bucket', action: 's3:ListBucket', handle: buckets.headBucket },
  { method: 'DELETE', on: 'bucket', action: 's3:DeleteBucket', handle: buckets.deleteBucket },
  { method: 'POST', on: 'bucket', query: { delete: true }, action: 'each', handle: buckets.deleteObjects },
  {
    method: 'GET',
    on: 'object',
    query: { uploadId: true },
    action: 's3:ListMultipartUploadParts',
    handle: uploads.listParts,
  },
  { method: 'GET', on: 'object', action: 's3:GetObject', handle: objects.getObject },
  { method: 'HEAD', on: 'object', action: 's3:GetObject', handle: objects.headObject },
  {
    method: 'PUT',
    on: 'object',
    query: { partNumber: true, uploadId: true },
    action: 's3:PutObject',
    handle: uploads.uploadPart,
  },
  { method: 'PUT', on: 'object', action: 's3:PutObject', handle: objects.putObject },
  {
    method: 'DELETE',
    on: 'object',
    query: { uploadId: true },
    action: 's3:AbortMultipartUpload',
    handle: uploads.abortUpload,
  },
  { method: 'DELETE', on: 'object', action: 's3:DeleteObject', handle: objects.deleteObject },
  { method: 'POST', on: 'object', query: { uploads: true }, action: 's3:PutObject', handle: uploads.createUpload },
  { method: 'POST', on: 'object', query: { uploadId: true }, action: 's3:PutObject', handle: uploads.completeUpload },
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
export function findOperation(method: string, target: S3Target): S3Operation {
  const on = target.key !== undefined ? 'object' : target.bucket !== undefined ? 'bucket' : 'service';
  const other = SUBRESOURCES.find((name) => target.query.has(name));
  const versioningPut = method !== 'GET' && target.query.has('versioning');
  if (other || versioningPut) {
    throw new ObjectError('NotImplemented', `The embedded object store does not serve ?${other ?? 'versioning'}.`);
  }
  const found = OPERATIONS.find((one) => one.method === method && one.on === on && fits(one.query, target.query));
  if (!found) throw new ObjectError('MethodNotAllowed', 'The specified method is not allowed against this resource.');
  return found;
}

function fits(wanted: S3Operation['query'], query: URLSearchParams): boolean {
  return Object.entries(wanted ?? {}).every(([name, value]) =>
    value === true ? query.has(name) : query.get(name) === value,
  );
}
