export type { JobDefinition, JobRun } from './job-definition.ts';
export { forgetFailedJobs } from './job-store.ts';
export type { JobQueue, Jobs } from './jobs.ts';
export { createJobs } from './jobs.ts';
export { jobMigrations } from './tables.ts';
