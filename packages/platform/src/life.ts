import { number, object, type Shape, storedText, text } from './kernel/stored-shape.ts';
/** What this start of the server is one of, as `scripts/supervise.mjs` tells it. */
export interface Life {
  /** How often the server was started again since its first start. */
  restarts: number;
  /** How the life before ended, e.g. `SIGKILL`; absent at the first start. */
  lastEnd?: string;
  /** Where it served, so that whoever found it there finds it again. */
  ports?: Ports;
}

export interface Ports {
  port: number;
  /** Of TLS, when it is on. */
  tlsPort?: number | undefined;
}

const VARIABLE = 'SUPERVISED_LIFE';
const LIFE: Shape<Life> = object(
  { restarts: number },
  { lastEnd: text, ports: object({ port: number }, { tlsPort: number }) },
);

/** Which life of the server this is, from its environment, where it is not left for what the server starts. */
export function readLife(env: NodeJS.ProcessEnv): Life {
  const text = env[VARIABLE];
  delete env[VARIABLE];
  return text === undefined ? { restarts: 0 } : storedText(LIFE, text);
}

/** Tells the process that keeps the server alive, if there is one, that it serves. */
export function tellServing(ports: Ports): void {
  process.send?.({ serving: ports });
}

/** Ends this process in its usual way when the one that keeps it alive is gone: nobody else knows of it. */
export function endWithSupervisor(): void {
  if (!process.channel) return;
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}
