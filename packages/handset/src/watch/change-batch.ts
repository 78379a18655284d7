/** Collects changed names and hands them over in one batch when a save, or a storm of saves, is over. */
export interface ChangeBatch {
  add(name: string): void;
  /** Forget what was collected and accept no more. */
  close(): void;
}

export interface BatchTimes {
  /** Milliseconds of silence that end a small change (one to three files). */
  readonly calm: number;
  /** Milliseconds of silence that end a storm (a checkout, an unpacked archive). */
  readonly storm: number;
  /** Milliseconds after which a batch is handed over even if changes keep coming. */
  readonly limit: number;
}

const DEFAULT_TIMES: BatchTimes = { calm: 8, storm: 80, limit: 1000 };
const SMALL_CHANGE = 3;

/**
 * A batch is delivered after a short silence; more than three files ask for a longer one, so that a storm is one build.
 * While `deliver` works, further changes wait and follow as one batch.
 */
export function createChangeBatch(
  /** Must not reject. */
  deliver: (names: ReadonlySet<string>) => Promise<void>,
  times: BatchTimes = DEFAULT_TIMES,
): ChangeBatch {
  let waiting = new Set<string>();
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let working = false;
  let closed = false;

  const schedule = (): void => {
    clearTimeout(timer);
    if (closed || working || waiting.size === 0) return;
    const silence = waiting.size > SMALL_CHANGE ? times.storm : times.calm;
    const left = Math.max(0, since + times.limit - Date.now());
    timer = setTimeout(flush, Math.min(silence, left));
  };

  const flush = (): void => {
    const names = waiting;
    waiting = new Set();
    working = true;
    void deliver(names).finally(() => {
      working = false;
      schedule();
    });
  };

  return {
    add(name) {
      if (closed) return;
      if (waiting.size === 0) since = Date.now();
      waiting.add(name);
      schedule();
    },
    close() {
      closed = true;
      clearTimeout(timer);
      waiting.clear();
    },
  };
}
