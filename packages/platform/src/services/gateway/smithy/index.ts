export { compileSmithy } from './compile.ts';
