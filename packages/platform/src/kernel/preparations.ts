import type { Logger } from 'pino';
import type { Clock } from './clock.ts';

/** What is known beforehand of something that the platform makes or fetches by itself. */
export interface Preparing {
  name: string;
  /** What will be there, as the subject of a sentence. */
  what: string;
  /** How long it takes on an ordinary machine and line. */
  usualSeconds: number;
}

/** How far it is. */
export interface Preparation extends Preparing {
  state: 'under way' | 'ready' | 'failed';
  /** What is being done, or why it failed. */
  step: string;
  /** How long it has been under way, or how long it took. */
  seconds: number;
}

interface Run extends Preparing {
  state: Preparation['state'];
  step: string;
  began: number;
  ended: number | undefined;
  said: boolean;
}

const SAY_EVERY_MS = 15_000;

/**
 * What the platform prepares in the background, so that nobody waits for it later: images, models. Each is told to the log while it is under
 * way, and to whoever asks how far it is. What turns out to be there is told to nobody's log.
 */
export class Preparations {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #runs = new Map<string, Run>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Does `work`, which says what it is at by `step`. Settles as `work` does; to log a failure is the caller's part. */
  async run<T>(of: Preparing, work: (step: (doing: string) => void) => Promise<T>): Promise<T> {
    const began = this.#clock.monotonic();
    const run: Run = { ...of, state: 'under way', step: 'begins', began, ended: undefined, said: false };
    this.#runs.set(of.name, run);
    const hush = this.#sayNowAndThen(run);
    const end = (state: Preparation['state'], step: string): void => {
      hush();
      Object.assign(run, { state, step, ended: this.#clock.monotonic() });
    };
    try {
      const made = await work((doing) => {
        run.step = doing;
        this.#say(run);
      });
      end('ready', 'done');
      if (run.said) this.#say(run);
      return made;
    } catch (error) {
      end('failed', error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  find(name: string): Preparation | undefined {
    const run = this.#runs.get(name);
    return run && this.#shown(run);
  }

  list(): Preparation[] {
    return [...this.#runs.values()].map((run) => this.#shown(run));
  }

  #sayNowAndThen(run: Run): () => void {
    let cancel = (): void => undefined;
    const arm = (): void => {
      cancel = this.#clock.after(SAY_EVERY_MS, () => {
        this.#say(run);
        arm();
      });
    };
    arm();
    return () => cancel();
  }

  #say(run: Run): void {
    run.said = true;
    const { name, what, state, step, seconds, usualSeconds } = this.#shown(run);
    if (state === 'ready') this.#log.info({ preparation: name, seconds }, `${what}: ready`);
    else
      this.#log.info({ preparation: name, step, seconds, usualSeconds }, `${what}: being prepared in the background`);
  }

  #shown({ began, ended, said: _, ...rest }: Run): Preparation {
    return { ...rest, seconds: Math.round(((ended ?? this.#clock.monotonic()) - began) / 1000) };
  }
}

/** How long it has been under way and how long it usually takes, for a message to a person or a model. */
export function soFar({ seconds, usualSeconds }: Pick<Preparation, 'seconds' | 'usualSeconds'>): string {
  return `for ${seconds} s so far; it usually takes about ${usualSeconds} s`;
}
