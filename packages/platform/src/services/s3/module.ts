import type { ServiceModule } from '../../service-module.ts';
import { s3Routes } from './s3-routes.ts';

/** Largest object in one request to the embedded store: S3's own limit of a single PUT. */
const MAX_OBJECT_BYTES = 5 * 2 ** 30;

/** The API of the object store; the store is the kernel's (`kernel/objects`). */
export const module: ServiceModule<'s3', never> = {
  create: ({ objects: store, spool, region, log }) => ({
    operations: {},
    routes: [s3Routes({ prefix: '/s3', store, maxObjectBytes: MAX_OBJECT_BYTES, spool, region, log })],
    port: undefined,
  }),
};
