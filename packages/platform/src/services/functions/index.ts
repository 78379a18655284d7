export type { FunctionAnswer, FunctionCall, FunctionCaller } from './function-caller.ts';
