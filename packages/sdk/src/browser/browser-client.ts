import {
  type AutomationStreamStatus,
  BedrockAgentCoreClient,
  type BedrockAgentCoreClientConfig,
  type BrowserAction,
  type BrowserActionResult,
  type BrowserSessionStream,
  GetBrowserSessionCommand,
  InvokeBrowserCommand,
  StartBrowserSessionCommand,
  StopBrowserSessionCommand,
  UpdateBrowserStreamCommand,
  type ViewPort,
} from '@aws-sdk/client-bedrock-agentcore';
import { presignView, signHandshake, type WsHeaders } from './ws-headers.ts';

export interface BrowserClientOptions extends Omit<BedrockAgentCoreClientConfig, 'region'> {
  /** Id or ARN of the browser; the built-in one when absent. */
  identifier?: string;
  /** A session that is open already; without it `start` opens one. */
  sessionId?: string;
}

export interface StartOptions {
  name?: string;
  /** Seconds after which the session ends by itself; 3600 when absent, at most 28800. */
  timeoutSeconds?: number;
  /** Size of the page; 1456 × 819 when absent. */
  viewPort?: ViewPort;
}

/**
 * A browser session: `start()` opens it, `generateWsHeaders()` says where and how programs drive it, `stop()` ends it. `await using` ends
 * it by itself. Every method throws the errors of the AWS SDK (ValidationException, ResourceNotFoundException …).
 */
export class BrowserClient implements AsyncDisposable {
  readonly identifier: string;
  readonly #client: BedrockAgentCoreClient;
  /** For actions; never says a thing twice, for a click must not be made twice. */
  readonly #invoking: BedrockAgentCoreClient;
  #sessionId: string | undefined;
  #starting: Promise<string> | undefined;

  /** `region` and everything else may come from the environment, as for every AWS client. */
  constructor(region?: string, options: BrowserClientOptions = {}) {
    const { identifier = 'aws.browser.v1', sessionId, ...config } = options;
    this.identifier = identifier;
    this.#sessionId = sessionId;
    const settings = { ...config, ...(region === undefined ? {} : { region }) };
    this.#client = new BedrockAgentCoreClient(settings);
    this.#invoking = new BedrockAgentCoreClient({ ...settings, maxAttempts: 1 });
  }

  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** Opens a session and returns its id; the id of the open one when there is one. */
  async start(options: StartOptions = {}): Promise<string> {
    if (this.#sessionId !== undefined) return this.#sessionId;
    // Calls made at the same time share one session.
    this.#starting ??= this.#open(options).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #open({ name, timeoutSeconds, viewPort }: StartOptions): Promise<string> {
    const wish = { browserIdentifier: this.identifier, name, sessionTimeoutSeconds: timeoutSeconds, viewPort };
    const { sessionId } = await this.#client.send(new StartBrowserSessionCommand(wish));
    if (sessionId === undefined) throw new Error('The platform started a session and gave no id.');
    this.#sessionId = sessionId;
    return sessionId;
  }

  /** Where a program drives the session (CDP), and the signed headers that let it in; opens a session when none is open. */
  async generateWsHeaders(): Promise<WsHeaders> {
    const { automationStream } = await this.#streams();
    const url = automationStream?.streamEndpoint;
    if (url === undefined) throw new Error(`The platform gave no automation stream for session ${this.#sessionId}.`);
    return signHandshake(this.#client, url);
  }

  /**
   * An address at which a person watches the session in a browser and takes control of it; with `readOnly` he only watches. It counts for
   * `expiresIn` seconds (300 when absent, and at most); the page goes on after that. Opens a session when none is open.
   */
  async generateLiveViewUrl({ expiresIn = 300, readOnly = false } = {}): Promise<string> {
    const { liveViewStream } = await this.#streams();
    const address = liveViewStream?.streamEndpoint;
    if (address === undefined) throw new Error(`The platform gave no live view for session ${this.#sessionId}.`);
    return presignView(this.#client, address, { expiresIn, readOnly });
  }

  async #streams(): Promise<Partial<BrowserSessionStream>> {
    const sessionId = await this.start();
    const wanted = { browserIdentifier: this.identifier, sessionId };
    return (await this.#client.send(new GetBrowserSessionCommand(wanted))).streams ?? {};
  }

  /** Does one action of the mouse or the keyboard, or takes a picture. What the browser cannot do is a result with FAILED. */
  async invoke(action: BrowserAction): Promise<BrowserActionResult> {
    const sessionId = await this.start();
    const { result } = await this.#invoking.send(
      new InvokeBrowserCommand({ browserIdentifier: this.identifier, sessionId, action }),
    );
    if (result === undefined) throw new Error('The action ended without a result.');
    return result;
  }

  /** A person drives the browser from now on: programs are cut off. */
  async takeControl(): Promise<void> {
    await this.#setAutomation('DISABLED');
  }

  /** Programs may drive the browser again. */
  async releaseControl(): Promise<void> {
    await this.#setAutomation('ENABLED');
  }

  async #setAutomation(streamStatus: AutomationStreamStatus): Promise<void> {
    await this.#client.send(
      new UpdateBrowserStreamCommand({
        browserIdentifier: this.identifier,
        sessionId: await this.start(),
        streamUpdate: { automationStreamUpdate: { streamStatus } },
      }),
    );
  }

  /** Ends the session; does nothing when none is open. */
  async stop(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return;
    this.#sessionId = undefined;
    await this.#client.send(new StopBrowserSessionCommand({ browserIdentifier: this.identifier, sessionId }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop();
    } finally {
      this.#client.destroy();
      this.#invoking.destroy();
    }
  }
}

/** A client with an open session, for `await using`. */
export async function browserSession(
  region?: string,
  options: BrowserClientOptions & { session?: StartOptions } = {},
): Promise<BrowserClient> {
  const { session, ...rest } = options;
  const client = new BrowserClient(region, rest);
  try {
    await client.start(session);
    return client;
  } catch (error) {
    await client[Symbol.asyncDispose]();
    throw error;
  }
}
