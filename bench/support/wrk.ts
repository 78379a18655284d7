import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runChild } from './child.ts';

export interface Saturation {
  url: string;
  connections: number;
  seconds: number;
  path: string;
  body: string;
  /** Header sets that are sent in turn. */
  headers: readonly Record<string, string>[];
}

/** Requests per second that wrk gets through; rejects when any answer was an error. */
export async function saturate(dir: string, load: Saturation): Promise<number> {
  const script = join(dir, 'load.lua');
  const sets = load.headers.map((headers) => {
    // Under this spelling wrk sees that there is one, and adds none of its own.
    const spelled = (name: string): string => (name === 'host' ? 'Host' : name);
    const fields = Object.entries(headers).map(
      ([name, value]) => `[${JSON.stringify(spelled(name))}]=${JSON.stringify(value)}`,
    );
    return `{${fields.join(',')}}`;
  });
  await writeFile(
    script,
    `local requests, at = {}, 0
function init()
  for i, headers in ipairs({${sets.join(',')}}) do
    requests[i] = wrk.format("POST", ${JSON.stringify(load.path)}, headers, ${JSON.stringify(load.body)})
  end
end
function request() at = at % #requests + 1 return requests[at] end
`,
  );
  const args = ['-t1', `-c${load.connections}`, `-d${load.seconds}`, '-s', script, load.url];
  const said = await runChild('wrk', args, (load.seconds + 30) * 1000);
  const failed = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(said)?.[0];
  if (failed) throw new Error(`wrk against ${load.url}: ${failed}`);
  return Number(/Requests\/sec:\s*([\d.]+)/.exec(said)?.[1]);
}
