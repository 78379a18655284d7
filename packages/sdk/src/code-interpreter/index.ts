export {
  CodeInterpreter,
  type CodeInterpreterOptions,
  type InvokeOptions,
  type StartOptions,
} from './code-interpreter.ts';
