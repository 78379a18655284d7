import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'a', 'the', 'dog', 'cat', 'sleeps', 'runs'];
const HIDDEN = 8;
const INNER = 16;
const POSITIONS = 512;

/** Writes a sentence-transformers model of one layer and ten words; its weights are random, and always the same. */
export async function writeTinyModel(directory: string): Promise<void> {
  const json = (name: string, value: object): Promise<void> => writeFile(join(directory, name), JSON.stringify(value));
  await json('config.json', {
    model_type: 'bert',
    hidden_size: HIDDEN,
    num_attention_heads: 2,
    num_hidden_layers: 1,
    layer_norm_eps: 1e-12,
  });
  await json('tokenizer_config.json', { tokenizer_class: 'BertTokenizer' });
  await json('tokenizer.json', {
    version: '1.0',
    added_tokens: WORDS.slice(0, 4).map((content, id) => ({ id, content, special: true })),
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: ['[CLS]', 'A', '[SEP]'].map((id) =>
        id === 'A' ? { Sequence: { id, type_id: 0 } } : { SpecialToken: { id, type_id: 0 } },
      ),
      pair: [],
      special_tokens: {
        '[CLS]': { id: '[CLS]', ids: [2], tokens: ['[CLS]'] },
        '[SEP]': { id: '[SEP]', ids: [3], tokens: ['[SEP]'] },
      },
    },
    decoder: null,
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(WORDS.map((word, id) => [word, id])),
    },
  });
  await writeFile(join(directory, 'model.safetensors'), safetensors(shapes()));
}

function shapes(): Record<string, number[]> {
  const norm = (name: string) => ({ [`${name}.weight`]: [HIDDEN], [`${name}.bias`]: [HIDDEN] });
  const linear = (name: string, out: number, into: number) => ({
    [`${name}.weight`]: [out, into],
    [`${name}.bias`]: [out],
  });
  const layer = 'encoder.layer.0';
  return {
    'embeddings.word_embeddings.weight': [WORDS.length, HIDDEN],
    'embeddings.position_embeddings.weight': [POSITIONS, HIDDEN],
    'embeddings.token_type_embeddings.weight': [2, HIDDEN],
    ...norm('embeddings.LayerNorm'),
    ...linear(`${layer}.attention.self.query`, HIDDEN, HIDDEN),
    ...linear(`${layer}.attention.self.key`, HIDDEN, HIDDEN),
    ...linear(`${layer}.attention.self.value`, HIDDEN, HIDDEN),
    ...linear(`${layer}.attention.output.dense`, HIDDEN, HIDDEN),
    ...norm(`${layer}.attention.output.LayerNorm`),
    ...linear(`${layer}.intermediate.dense`, INNER, HIDDEN),
    ...linear(`${layer}.output.dense`, HIDDEN, INNER),
    ...norm(`${layer}.output.LayerNorm`),
  };
}

/** The file with these tensors, filled from one fixed sequence. */
function safetensors(tensors: Record<string, number[]>): Buffer {
  let state = 42;
  const next = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  const header: Record<string, object> = {};
  const data: Buffer[] = [];
  let offset = 0;
  for (const [name, shape] of Object.entries(tensors)) {
    const values = Float32Array.from({ length: shape.reduce((product, size) => product * size, 1) }, next);
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + values.byteLength] };
    data.push(Buffer.from(values.buffer));
    offset += values.byteLength;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...data]);
}
