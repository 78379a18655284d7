/** What must be closed at the end, in the reverse order of its making. */
export class Closing {
  readonly #steps: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;

  add(step: () => Promise<void>): void {
    this.#steps.push(step);
  }

  /** Closes everything, also when one step fails; then rejects with the first failure. A second call waits for the first. */
  run(): Promise<void> {
    this.#running ??= this.#all();
    return this.#running;
  }

  async #all(): Promise<void> {
    const failures: unknown[] = [];
    for (const step of this.#steps.reverse()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
