import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'pino';

/** A request under way, for as long as it is. */
interface Course {
  end: (() => void) | undefined;
}

/**
 * The last line of defence: an error that nobody caught, thrown or rejected, is logged and counted, and ends the request in whose course it
 * was met where that is known. It never ends the server, on which all others depend. Each is a defect: its place should have an owner.
 */
export class Unhandled {
  readonly #log: Logger;
  readonly #courses = new AsyncLocalStorage<Course>();
  #count = 0;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Since the start. */
  get count(): number {
    return this.#count;
  }

  /** Takes the process's own errors from now on, until the function that it gives is called. */
  guard(): () => void {
    const take = (error: unknown, origin: string): void => this.take(error, origin);
    process.on('uncaughtException', take);
    return () => void process.off('uncaughtException', take);
  }

  /** Does `work` in the course of a request, which `end` would end. Gives what says that the request is over: timers that it began live on. */
  during(end: () => void, work: () => void): () => void {
    const course: Course = { end };
    this.#courses.run(course, work);
    return () => {
      course.end = undefined;
    };
  }

  take(error: unknown, origin: string): void {
    this.#count += 1;
    const course = this.#courses.getStore();
    // Node leaves it behind for whatever comes next, which may belong to another.
    this.#courses.enterWith({ end: undefined });
    this.#log.error({ err: error, origin, count: this.#count }, 'an error that nobody caught; the server serves on');
    try {
      course?.end?.();
    } catch (failure) {
      this.#log.error({ err: failure }, 'the request of an error that nobody caught could not be ended');
    }
  }
}
