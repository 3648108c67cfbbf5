export {Client, type EnqueueResult, type NewJob, type NewTime, type NextOptions} from './client';
export type {ConsumedJob} from './consume';
export {Dead, DelayqError, JobStopped, RetryIn, type ErrorCode, type StopReason} from './errors';
export {
  Job,
  JobInfo,
  type DequeueResult,
  type JobState,
  type Occurrence,
  type Schedule,
  type ScheduledRun,
  type ScheduleState,
} from './job';
export type {CallSignal, ClientOptions, EnqueueOptions, JobOptions, Logger, ScheduleOptions, WorkerOptions} from './options';
export type {Duration, Headers, Moment, Payload} from './values';
export {Worker, type Handler, type Middleware} from './worker';
