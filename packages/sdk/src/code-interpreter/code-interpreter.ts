import {
  BedrockAgentCoreClient,
  type BedrockAgentCoreClientConfig,
  type CodeInterpreterResult,
  InvokeCodeInterpreterCommand,
  StartCodeInterpreterSessionCommand,
  StopCodeInterpreterSessionCommand,
  type ToolArguments,
  type ToolName,
} from '@aws-sdk/client-bedrock-agentcore';
import { readingResults } from './result-events.ts';

export interface CodeInterpreterOptions extends Omit<BedrockAgentCoreClientConfig, 'region'> {
  /** Id or ARN of the interpreter; the built-in one when absent. */
  identifier?: string;
}

export interface StartOptions {
  name?: string;
  /** Seconds after which the session ends by itself; 900 when absent, at most 28800. */
  timeoutSeconds?: number;
}

export interface InvokeOptions {
  /** Gets what code and commands print, as it comes. */
  onOutput?: (stream: 'stdout' | 'stderr', text: string) => void;
  signal?: AbortSignal;
}

/** Bytes that one call carries; larger files go in parts. */
const PART_BYTES = 4 * 1024 * 1024;

/**
 * A code-interpreter session: `start()` opens it, `invoke(operation, arguments)` runs an operation in it, `stop()` ends it.
 * `await using` ends it by itself. Files leave the session only by `readFiles` or `download`.
 * Every method throws the errors of the AWS SDK (ValidationException, ResourceNotFoundException …).
 * Source: spec "Code Interpreter client".
 */
export class CodeInterpreter implements AsyncDisposable {
  readonly identifier: string;
  readonly #client: BedrockAgentCoreClient;
  /** For calls in a session; never says a thing twice, for code must not run twice. */
  readonly #invoking: BedrockAgentCoreClient;
  #sessionId: string | undefined;
  #starting: Promise<string> | undefined;

  /** `region` and everything else may come from the environment, as for every AWS client. */
  constructor(region?: string, options: CodeInterpreterOptions = {}) {
    const { identifier = 'aws.codeinterpreter.v1', ...config } = options;
    this.identifier = identifier;
    const settings = { ...config, ...(region === undefined ? {} : { region }) };
    this.#client = new BedrockAgentCoreClient(settings);
    this.#invoking = new BedrockAgentCoreClient({ ...settings, maxAttempts: 1 });
    this.#invoking.config.eventStreamMarshaller = readingResults(this.#invoking.config.eventStreamMarshaller);
    this.#invoking.middlewareStack.add(
      (next) => (args) => {
        const { request } = args as { request?: { headers?: Record<string, string> } };
        if (request?.headers) request.headers['x-agentplatform-events'] = 'streamed';
        return next(args);
      },
      { step: 'build', name: 'streamedEvents' },
    );
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

  async #open(options: StartOptions): Promise<string> {
    const { sessionId } = await this.#client.send(
      new StartCodeInterpreterSessionCommand({
        codeInterpreterIdentifier: this.identifier,
        name: options.name,
        sessionTimeoutSeconds: options.timeoutSeconds,
      }),
    );
    if (sessionId === undefined) throw new Error('The platform started a session and gave no id.');
    this.#sessionId = sessionId;
    return sessionId;
  }

  /** Runs an operation, e.g. `invoke('executeCode', { language: 'python', code })`; opens a session when none is open. */
  async invoke(
    operation: ToolName,
    args: ToolArguments = {},
    options: InvokeOptions = {},
  ): Promise<CodeInterpreterResult> {
    const sessionId = await this.start();
    const { stream } = await this.#invoking.send(
      new InvokeCodeInterpreterCommand({
        codeInterpreterIdentifier: this.identifier,
        sessionId,
        name: operation,
        arguments: args,
      }),
      options.signal ? { abortSignal: options.signal } : {},
    );
    let last: CodeInterpreterResult | undefined;
    const passed = { stdout: 0, stderr: 0 };
    for await (const { result } of stream ?? []) {
      if (!result) continue;
      // Parts have no content; the last event holds all of it, of which some was passed on already.
      const whole = (result.content?.length ?? 0) > 0;
      for (const name of ['stdout', 'stderr'] as const) {
        const text = result.structuredContent?.[name] ?? '';
        const fresh = whole ? text.slice(passed[name]) : text;
        passed[name] += fresh.length;
        if (fresh !== '') options.onOutput?.(name, fresh);
      }
      last = result;
    }
    if (!last) throw new Error(`${operation} ended without a result.`);
    return last;
  }

  /** Writes a file of any size into the session. */
  async upload(path: string, content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
    if (bytes.length <= PART_BYTES) return this.#write(path, bytes);
    const part = `${path}.uploading`;
    await this.#run(`mkdir -p -- "$(dirname -- ${quote(path)})" && : > ${quote(path)}`);
    for (let at = 0; at < bytes.length; at += PART_BYTES) {
      await this.#write(part, bytes.subarray(at, at + PART_BYTES));
      await this.#run(`cat -- ${quote(part)} >> ${quote(path)} && rm -- ${quote(part)}`);
    }
  }

  /** Reads a file of any size out of the session. */
  async download(path: string): Promise<Uint8Array> {
    const size = Number(await this.#run(`stat -Lc %s -- ${quote(path)}`));
    if (size <= PART_BYTES) return this.#read(path);
    const part = `${path}.downloading`;
    const parts: Uint8Array[] = [];
    try {
      for (let i = 0; i * PART_BYTES < size; i++) {
        await this.#run(`dd if=${quote(path)} of=${quote(part)} bs=${PART_BYTES} skip=${i} count=1 status=none`);
        parts.push(await this.#read(part));
      }
    } finally {
      await this.#run(`rm -f -- ${quote(part)}`);
    }
    return Buffer.concat(parts);
  }

  /** Ends the session; does nothing when none is open. */
  async stop(): Promise<void> {
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return;
    this.#sessionId = undefined;
    await this.#client.send(
      new StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier: this.identifier, sessionId }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop();
    } finally {
      this.#client.destroy();
      this.#invoking.destroy();
    }
  }

  async #write(path: string, blob: Uint8Array): Promise<void> {
    good(await this.invoke('writeFiles', { content: [{ path, blob }] }));
  }

  async #read(path: string): Promise<Uint8Array> {
    const result = good(await this.invoke('readFiles', { paths: [path] }));
    const resource = result.content?.[0]?.resource;
    return resource?.blob ?? Buffer.from(resource?.text ?? '', 'utf8');
  }

  async #run(command: string): Promise<string> {
    return good(await this.invoke('executeCommand', { command })).structuredContent?.stdout ?? '';
  }
}

function good(result: CodeInterpreterResult): CodeInterpreterResult {
  if (!result.isError) return result;
  throw new Error(result.content?.map((block) => block.text ?? '').join('\n') || 'The operation failed.');
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
