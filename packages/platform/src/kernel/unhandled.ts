import { AsyncLocalStorage } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';
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

  /**
   * Does `work` in the course of a request, which `end` would end. What `sources` say later is heard in it too: Node says it in the course of
   * their connection. Gives what says that the request is over: timers that it began live on.
   */
  during(end: () => void, work: () => void, sources: readonly EventEmitter[]): () => void {
    const course: Course = { end };
    for (const source of sources) this.#hear(source, course);
    this.#within(course, work);
    return () => {
      course.end = undefined;
    };
  }

  take(error: unknown, origin: string): void {
    const course = this.#courses.getStore();
    // Node leaves it behind for the next work, which may belong to another owner.
    this.#courses.enterWith({ end: undefined });
    this.#end(course, error, origin);
  }

  #hear(source: EventEmitter, course: Course): void {
    const emit = source.emit;
    source.emit = (...said: Parameters<typeof emit>) => this.#within(course, () => emit.apply(source, said)) ?? true;
  }

  /** An error that leaves a course has lost it by the time that Node tells of it. */
  #within<Result>(course: Course, work: () => Result): Result | undefined {
    try {
      return this.#courses.run(course, work);
    } catch (error) {
      this.#end(course, error, 'uncaughtException');
      return undefined;
    }
  }

  #end(course: Course | undefined, error: unknown, origin: string): void {
    this.#count += 1;
    this.#log.error({ err: error, origin, count: this.#count }, 'an error that nobody caught; the server serves on');
    try {
      course?.end?.();
    } catch (failure) {
      this.#log.error({ err: failure }, 'the request of an error that nobody caught could not be ended');
    }
  }
}
