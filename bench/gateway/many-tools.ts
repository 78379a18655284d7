/** An OpenAPI document of one operation for each sentence, which says what it does. */
export function manyTools(url: string, sentences: readonly string[]): string {
  const text = { type: 'string' };
  const operations = sentences.map((description, at) => {
    const [first = '', second = ''] = description.toLowerCase().match(/[a-z]+/g) ?? [];
    const parameters = [
      { name: 'id', in: 'path', required: true, schema: text, description: `Which ${second}` },
      { name: 'limit', in: 'query', schema: { type: 'integer' }, description: 'How many of them at most' },
    ];
    const operationId = `${first.slice(0, 20)}_${second.slice(0, 20)}_${at}`;
    const operation = { operationId, description, parameters, responses: { 200: { description: 'ok' } } };
    return [`/things/${at}/{id}`, { get: operation }];
  });
  const info = { title: 'Things', version: '1' };
  return JSON.stringify({ openapi: '3.0.3', info, servers: [{ url }], paths: Object.fromEntries(operations) });
}
