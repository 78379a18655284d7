/** Ends the bootstrap with a paragraph for the person in front of it: what is wrong and what to do. */
export class Stop extends Error {
  /** @param {string} message @param {number} exitCode */
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
