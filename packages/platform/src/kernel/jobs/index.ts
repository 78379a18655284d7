export type { EnqueueOptions, FailedJob, JobDefinition, JobRun } from './job-definition.ts';
export type { JobQueue, Jobs, JobsOptions } from './jobs.ts';
export { createJobs } from './jobs.ts';
