export { callerOf, type ModelUse } from './model-use.ts';
export { usageRoutes } from './usage-routes.ts';
export { forgetUsage, usageSink } from './usage-store.ts';
