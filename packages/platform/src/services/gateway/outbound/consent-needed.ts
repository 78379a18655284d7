/** A person has to consent before a target can be called. */
export class ConsentNeeded extends Error {
  /** The address at which a person consents. */
  readonly url: string;
  /** Names the consent: the same as long as it is awaited. */
  readonly sessionUri: string;

  constructor(target: string, url: string, sessionUri: string) {
    super(`The target ${target} needs your consent. Open ${url} and call the tool again.`);
    this.name = 'ConsentNeeded';
    this.url = url;
    this.sessionUri = sessionUri;
  }
}
