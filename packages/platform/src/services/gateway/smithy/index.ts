export { compileSmithy, type SmithyInput, type SmithyOptions } from './compile.ts';
