import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { CodeInterpreter } from 'agentplatform/code-interpreter';
import { plan } from './analyst.ts';

/**
 * A data analyst: gets a CSV and a question, lets its model write Python for them, runs that in a code-interpreter session, and
 * brings the chart back. The session has a disk of its own; the CSV goes in and the chart comes out by explicit calls.
 */
const [csv = 'sales.csv', question = 'How do sales develop by month?', chart = 'chart.png'] = process.argv.slice(2);

const endpoint = process.env.AWS_ENDPOINT_URL;
await using interpreter = new CodeInterpreter(process.env.AWS_REGION, endpoint === undefined ? {} : { endpoint });
await interpreter.start({ name: 'data analyst' });
await interpreter.upload(basename(csv), await readFile(csv));

const look = await interpreter.invoke('executeCode', {
  language: 'python',
  code: `import pandas as pd\ntable = pd.read_csv(${JSON.stringify(basename(csv))})\nprint(list(table.columns))`,
});
if (look.isError) throw new Error(look.structuredContent?.stderr);

const code = plan({ question, columns: look.structuredContent?.stdout ?? '' });
const result = await interpreter.invoke(
  'executeCode',
  { language: 'python', code },
  { onOutput: (stream, text) => process[stream].write(text) },
);
if (result.isError) throw new Error('The analysis failed.');
await writeFile(chart, await interpreter.download('chart.png'));
console.log(`The chart is in ${chart}.`);
