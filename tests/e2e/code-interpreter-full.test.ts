import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type CodeSession, startCodeSession } from '../support/code-session.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
const example = resolve(import.meta.dirname, '../../examples/data-analyst');
let platform: TestPlatform;
let clients: Clients;
let work: string;

beforeAll(async () => {
  const env = { AGENTPLATFORM_CODE_INTERPRETER_WARM_SESSIONS: '0', AGENTPLATFORM_CODE_INTERPRETER_PREPARE: 'on' };
  platform = await startTestPlatform({ env });
  clients = clientsOf(platform);
  work = await mkdtemp(join(tmpdir(), 'data-analyst-'));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(work, { recursive: true, force: true });
});

const VENDOR_LIST = resolve(import.meta.dirname, '../../images/code-interpreter/vendor-packages.txt');
const DEVIATIONS = resolve(import.meta.dirname, '../../docs/deviations/code-interpreter.md');

/** Packages, fonts and locales; what the vendor lists and is not here stands in the page of differences, and nothing else does. */
async function hasWhatModelsExpect(session: CodeSession): Promise<void> {
  const imports = await session.python(
    'import plotly, pyarrow, polars, bokeh, pytz, boto3\nprint(polars.DataFrame({"a": [1, 2]})["a"].sum())',
  );
  expect(imports.structuredContent).toMatchObject({ stdout: '3\n', exitCode: 0 });
  const cheerio = 'const { load } = await import("cheerio"); load("<b>bold</b>")("b").text()';
  expect((await session.call('executeCode', { language: 'javascript', code: cheerio })).text).toBe("'bold'");

  const listed = (await readFile(VENDOR_LIST, 'utf8'))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const names =
    'import importlib.metadata as m, re\nprint(*{re.sub("[-_.]+", "-", d.name).lower() for d in m.distributions()})';
  const installed = new Set((await session.python(names)).structuredContent?.stdout?.trim().split(' '));
  const [, differences = ''] = (await readFile(DEVIATIONS, 'utf8')).split('\n## Libraries\n');
  const [, said = ''] = /not here: ([^.]*)\./.exec(differences.replaceAll('\n', ' ')) ?? [];
  expect([...said.matchAll(/`([^`]+)`/g)].map(([, name]) => name)).toEqual(
    listed.filter((name) => !installed.has(name)),
  );

  // A letter without a font is a warning, and the picture has a box in its place.
  const title = (text: string) =>
    session.python(
      `import warnings, matplotlib.pyplot as plt\nwith warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter("always")\n    plt.figure(); plt.title(${JSON.stringify(text)}); plt.savefig("title.png"); plt.close()\nprint([str(one.message) for one in told])`,
    );
  expect((await title('東京 中文 한국어 العربية हिन्दी')).structuredContent?.stdout).toBe('[]\n');
  expect((await title('\u{12000}')).structuredContent?.stdout).toContain('missing from font');

  const number = (locale: string) =>
    session.python(
      `import locale\nlocale.setlocale(locale.LC_ALL, "${locale}")\nprint(locale.format_string("%.2f", 1234567.89, grouping=True))`,
    );
  expect((await number('de_DE.UTF-8')).structuredContent?.stdout).toBe('1.234.567,89\n');
  expect((await number('en_US.UTF-8')).structuredContent?.stdout).toBe('1,234,567.89\n');
  await session.python('locale.setlocale(locale.LC_ALL, "C.UTF-8")');
}

describe('the full image', () => {
  it('is made behind the slim one, has the libraries for data work, and draws', { timeout: 900_000 }, async () => {
    const libraries = 'import numpy, pandas, matplotlib, scipy, sklearn, openpyxl, PIL, requests';
    const first = await startCodeSession(clients);
    expect((await first.python('1 + 1')).text).toBe('2');
    await first.stop();
    let session = await startCodeSession(clients);
    for (const deadline = Date.now() + 800_000; Date.now() < deadline; session = await startCodeSession(clients)) {
      if (!(await session.python(libraries)).isError) break;
      await session.stop();
      await sleep(5000);
    }
    const drawn = await session.python('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);');
    expect(drawn.content?.filter((block) => block.type === 'image')).toMatchObject([{ mimeType: 'image/png' }]);
    // Models write that line, before or after they import pyplot; what was drawn is shown once.
    for (const habit of [
      'import matplotlib; matplotlib.use("Agg")',
      'import matplotlib.pyplot as p; p.switch_backend("Agg")',
    ]) {
      const picture = `${habit}\nimport matplotlib.pyplot as plt\nplt.figure(); plt.plot([3, 1, 2])\nplt.show()`;
      const blind = await session.call('executeCode', { language: 'python', code: picture, clearContext: true });
      expect(blind.content?.filter((block) => block.type === 'image')).toMatchObject([{ mimeType: 'image/png' }]);
      expect(blind.structuredContent).toMatchObject({ exitCode: 0, stderr: '' });
      expect((await session.python('plt.get_fignums()')).text).toBe('[]');
    }
    const table = await session.python('import pandas as pd\npd.DataFrame({"a": [1, 2]})');
    expect(table.content?.find((block) => block.type === 'resource')?.resource?.text).toContain('<table');
    const excel = 'pd.DataFrame({"a": [1, 2]}).to_excel("t.xlsx", index=False); int(pd.read_excel("t.xlsx").a.sum())';
    expect((await session.python(excel)).text).toBe('3');
    await hasWhatModelsExpect(session);
    const deno = (code: string) => session.call('executeCode', { language: 'typescript', runtime: 'deno', code });
    expect(await deno('const n: number = 20; console.log(typeof Deno); n + 1')).toMatchObject({
      content: [
        { type: 'text', text: 'object\n' },
        { type: 'text', text: '21' },
      ],
      isError: false,
    });
    expect((await deno('n * 2')).text).toBe('40');
    // It says that it is done before, after or amid what it prints.
    for (let i = 0; i < 5; i++) {
      const fresh = { language: 'typescript', runtime: 'deno', code: 'console.log(1); 2', clearContext: true } as const;
      expect((await session.call('executeCode', fresh)).content?.map(({ text }) => text)).toEqual(['1\n', '2']);
    }
    expect((await deno('throw new RangeError("on purpose")')).text).toContain('on purpose');
    await session.stop();
  });

  it('examples/data-analyst gives a CSV to an agent and gets a chart back', { timeout: 300_000 }, async () => {
    const chart = join(work, 'chart.png');
    const { stdout } = await run(
      process.execPath,
      [join(example, 'index.ts'), join(example, 'sales.csv'), 'How do sales develop by month?', chart],
      { env: { ...process.env, ...platform.env } },
    );
    expect(stdout).toMatch(/January\s+200\nFebruary\s+245\nMarch\s+300\n/);
    const png = await readFile(chart);
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    expect(png.length).toBeGreaterThan(5000);
  });
});
