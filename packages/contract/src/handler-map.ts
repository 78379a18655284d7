import type { Inputs, OperationName, Outputs } from './generated/types.ts';

/** What serves one operation: its decoded and checked input goes in, its output comes back; errors are thrown as ServiceError. */
export type Handler<K extends OperationName, Context> = (input: Inputs[K], context: Context) => Promise<Outputs[K]>;

/** Every operation of the contract is served or named in the list of those that are not built yet; the compiler holds it so. */
export type HandlerMap<Context, Missing extends OperationName = never> = {
  [K in Exclude<OperationName, Missing>]: Handler<K, Context>;
};
