export type { JobDefinition, JobRun } from './job-definition.ts';
export type { JobQueue, Jobs } from './jobs.ts';
export { createJobs } from './jobs.ts';
