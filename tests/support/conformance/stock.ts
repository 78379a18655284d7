/** What the servers of both eras offer that the conformance suite asks, by the names that it knows. */

/** The smallest PNG: one pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
/** A WAV without samples. */
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const text = (words: string): object => ({ type: 'text', text: words });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };

/** Tools that answer the same whatever they are asked. */
export const ANSWERS: Readonly<Record<string, object>> = {
  test_simple_text: { content: [text('This is a simple text response for testing.')] },
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
  test_embedded_resource: {
    content: [
      {
        type: 'resource',
        resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource.' },
      },
    ],
  },
  test_multiple_content_types: {
    content: [
      text('Multiple content types test:'),
      image,
      {
        type: 'resource',
        resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data"}' },
      },
    ],
  },
  test_error_handling: { isError: true, content: [text('This tool intentionally returns an error for testing')] },
  test_logging_tool: { content: [text('Nothing was logged.')] },
};

const string = { type: 'string' };
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: string, city: string } } },
  properties: {
    name: string,
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: the word is JSON Schema's
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

/** As they are listed, with those that a server of one era has beside. */
export function toolsWith(names: readonly string[]): object[] {
  const plain = [...Object.keys(ANSWERS), 'test_tool_with_progress', ...names];
  return [
    ...plain.map((name) => ({ name, description: `The suite calls ${name}.`, inputSchema: { type: 'object' } })),
    { name: 'json_schema_2020_12_tool', description: 'Has a rich schema.', inputSchema: SCHEMA_2020_12 },
  ];
}

export const PROMPTS = [
  { name: 'test_simple_prompt', description: 'A prompt.' },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with arguments.',
    arguments: [
      { name: 'arg1', description: 'The first.', required: true },
      { name: 'arg2', description: 'The second.', required: true },
    ],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt with a resource.',
    arguments: [{ name: 'resourceUri', description: 'Of the resource.', required: true }],
  },
  { name: 'test_prompt_with_image', description: 'A prompt with an image.' },
];

/** The messages of a prompt. */
export function promptOf(name: string, args: Record<string, string> = {}): object {
  const user = (content: object): object => ({ role: 'user', content });
  const { arg1, arg2, resourceUri: uri } = args;
  if (name === 'test_prompt_with_arguments')
    return { messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))] };
  if (name === 'test_prompt_with_embedded_resource')
    return {
      messages: [
        user({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content.' } }),
        user(text('Please process the embedded resource above.')),
      ],
    };
  if (name === 'test_prompt_with_image')
    return { messages: [user(image), user(text('Please analyze the image above.'))] };
  return { messages: [user(text('This is a simple prompt for testing.'))] };
}

export const RESOURCES = [
  { uri: 'test://static-text', name: 'Text', description: 'A text.', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'Image', description: 'An image.', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'Watched', description: 'A resource that changes.', mimeType: 'text/plain' },
];
export const TEMPLATES = [
  { uriTemplate: 'test://template/{id}/data', name: 'Data', description: 'Data by id.', mimeType: 'application/json' },
];

/** Undefined where there is no such resource. */
export function resourceOf(uri: string): object | undefined {
  const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
  if (id !== undefined)
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }] };
  if (uri === 'test://static-binary') return { contents: [{ uri, mimeType: 'image/png', blob: PNG }] };
  if (!RESOURCES.some((one) => one.uri === uri)) return undefined;
  return { contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }] };
}
