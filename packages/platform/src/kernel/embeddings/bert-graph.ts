import { ONNX_FLOAT, ONNX_INT64, OnnxWriter } from './onnx-writer.ts';
import type { Tensor } from './safetensors.ts';

/** What of a BERT model's `config.json` its graph needs. */
export interface BertConfig {
  hiddenSize: number;
  heads: number;
  layers: number;
  epsilon: number;
}

/** Throws when the configuration is not that of a BERT encoder. */
export function readBertConfig(json: unknown): BertConfig {
  const config = json as Record<string, unknown>;
  const of = (key: string): number => {
    const value = config[key];
    if (typeof value !== 'number' || value <= 0) throw new Error(`the model's config.json has no ${key}`);
    return value;
  };
  if (config.model_type !== 'bert')
    throw new Error(`models of type ${String(config.model_type)} are not known, only bert`);
  return {
    hiddenSize: of('hidden_size'),
    heads: of('num_attention_heads'),
    layers: of('num_hidden_layers'),
    epsilon: of('layer_norm_eps'),
  };
}

/**
 * The ONNX model of a BERT sentence encoder: inputs `input_ids`, `attention_mask` and `position_ids`, output `embedding`,
 * the mean of the last layer over the tokens that the mask lets through. Weights stay in the safetensors file
 * `file`, and keep their names there.
 */
export function bertOnnx(config: BertConfig, file: string, tensors: ReadonlyMap<string, Tensor>): Uint8Array {
  const g = new OnnxWriter();
  const { hiddenSize, heads } = config;
  const size = hiddenSize / heads;
  const weight = (name: string): string => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`the model lacks the weight ${name}`);
    return g.stored(tensor.shape, name, { file, ...tensor });
  };
  const linear = (x: string, name: string): string => {
    const transposed = g.node('Transpose', [weight(`${name}.weight`)], { perm: { ints: [1, 0] } });
    return g.node('Add', [g.node('MatMul', [x, transposed]), weight(`${name}.bias`)]);
  };
  const norm = (x: string, name: string): string =>
    g.node('LayerNormalization', [x, weight(`${name}.weight`), weight(`${name}.bias`)], {
      axis: -1,
      epsilon: { float: config.epsilon },
    });

  const ids = g.input('input_ids', ONNX_INT64, ['batch', 'tokens']);
  const mask = g.node('Cast', [g.input('attention_mask', ONNX_INT64, ['batch', 'tokens'])], { to: ONNX_FLOAT });
  const positions = g.input('position_ids', ONNX_INT64, ['batch', 'tokens']);
  const closed = g.node('Mul', [g.node('Sub', [g.floats([1]), mask]), g.floats([-10_000])]);
  const bias = g.node('Unsqueeze', [closed, g.integers([1, 2])]);
  const byHead = g.integers([0, 0, heads, size]);
  const whole = g.integers([0, 0, hiddenSize]);
  const scale = g.floats([1 / Math.sqrt(size)]);

  const attention = (x: string, layer: string): string => {
    const split = (part: string, perm: number[]): string => {
      const projected = g.node('Reshape', [linear(x, `${layer}.attention.self.${part}`), byHead]);
      return g.node('Transpose', [projected], { perm: { ints: perm } });
    };
    const scores = g.node('MatMul', [split('query', [0, 2, 1, 3]), split('key', [0, 2, 3, 1])]);
    const shares = g.node('Softmax', [g.node('Add', [g.node('Mul', [scores, scale]), bias])], { axis: -1 });
    const mixed = g.node('Transpose', [g.node('MatMul', [shares, split('value', [0, 2, 1, 3])])], {
      perm: { ints: [0, 2, 1, 3] },
    });
    return linear(g.node('Reshape', [mixed, whole]), `${layer}.attention.output.dense`);
  };
  const gelu = (x: string): string => {
    const error = g.node('Erf', [g.node('Div', [x, g.floats([Math.SQRT2])])]);
    return g.node('Mul', [g.node('Mul', [x, g.node('Add', [error, g.floats([1])])]), g.floats([0.5])]);
  };

  const words = g.node('Gather', [weight('embeddings.word_embeddings.weight'), ids]);
  const places = g.node('Gather', [weight('embeddings.position_embeddings.weight'), positions]);
  const kind = g.node('Gather', [weight('embeddings.token_type_embeddings.weight'), g.integers([0])]);
  let x = norm(g.node('Add', [g.node('Add', [words, places]), kind]), 'embeddings.LayerNorm');
  for (let index = 0; index < config.layers; index++) {
    const layer = `encoder.layer.${index}`;
    x = norm(g.node('Add', [attention(x, layer), x]), `${layer}.attention.output.LayerNorm`);
    const inner = gelu(linear(x, `${layer}.intermediate.dense`));
    x = norm(g.node('Add', [linear(inner, `${layer}.output.dense`), x]), `${layer}.output.LayerNorm`);
  }
  const open = g.node('Unsqueeze', [mask, g.integers([2])]);
  const sum = g.node('ReduceSum', [g.node('Mul', [x, open]), g.integers([1])], { keepdims: 0 });
  const count = g.node('ReduceSum', [open, g.integers([1])], { keepdims: 0 });
  g.node('Div', [sum, count], {}, 'embedding');
  g.output('embedding', ONNX_FLOAT, ['batch', hiddenSize]);
  return g.model();
}
