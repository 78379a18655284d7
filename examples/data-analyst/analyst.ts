/**
 * The place of the model: gets the question and the columns, answers with Python. This one is a fixed rule, so that the example
 * runs offline; in its place goes a call of any model with the same two inputs in its prompt.
 */
export function plan({ question, columns }: { question: string; columns: string }): string {
  const names = [...columns.matchAll(/'([^']+)'/g)].map(([, name]) => name);
  const [by = '', ...values] = names;
  const value =
    values.find((name) => question.toLowerCase().includes(String(name).toLowerCase())) ?? values.at(-1) ?? '';
  return [
    'import matplotlib.pyplot as plt',
    `sums = table.groupby(${JSON.stringify(by)}, sort=False)[${JSON.stringify(value)}].sum()`,
    'print(sums.to_string())',
    'figure, axes = plt.subplots(figsize=(8, 4))',
    `sums.plot.bar(ax=axes, title=${JSON.stringify(question)})`,
    'figure.tight_layout()',
    'figure.savefig("chart.png")',
  ].join('\n');
}
