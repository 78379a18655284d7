import ts from 'typescript';

/** Who takes what is handed to them whole, errors included. */
const TAKERS = new Set(['pipeline', 'finished', 'once', 'text', 'buffer', 'feed', 'send', 'verifyBody', 'push']);
/** What tells errors to the function that it is called with, where it is, whatever it is called here. */
const CALLING_BACK = new Set(['execFile', 'exec', 'pipeline']);
/**
 * Emitters that never emit `error` where they are used as here: pools of connections, whose requests tell it, what is hashed and sealed by
 * `update`, which throws, loggers, and the console of jsdom, which hears itself.
 */
const SILENT = new Set([
  ...['Agent', 'Dispatcher', 'Hash', 'Hmac', 'Cipheriv', 'Decipheriv', 'LoggerExtras', 'VirtualConsole'],
]);

/**
 * Streams, sockets, servers, children, workers, watchers and pools in source of which nobody in sight hears `error`, and timers that nobody can call
 * off.
 *
 * What makes one is known by its type: a call or a `new` whose value is an `EventEmitter`, whatever name it goes by. That somebody hears it is judged by
 * name: a listener on the name that it is given, or a pipeline, a loop or a caller (`return`, `yield`, a member of what is handed on) that takes it. What is handed
 * on is trusted, and so is a listener that comes late.
 */
export class Unowned {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;

  constructor(program: ts.Program) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /** As `line: expression`. */
  in(path: string): string[] {
    const file = this.#program.getSourceFile(path);
    if (!file) throw new Error(`no source: ${path}`);
    const found: string[] = [];
    const tell = (node: ts.Node, what: string): void => {
      found.push(`${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}: ${what}`);
    };
    const visit = (node: ts.Node): void => {
      if (this.#makes(node) && !isOwned(node, file.text)) tell(node, node.expression.getText(file));
      if ((ts.isExpressionStatement(node) || ts.isVoidExpression(node)) && this.#isTimer(node.expression))
        tell(node, 'a timer');
      ts.forEachChild(node, visit);
    };
    visit(file);
    return found;
  }

  /** Makes an emitter, rather than give back the one that it is asked of (`this`) or given (`pipe`). */
  #makes(node: ts.Node): node is ts.CallExpression | ts.NewExpression {
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return false;
    if (node.expression.kind === ts.SyntaxKind.SuperKeyword) return false;
    const declaration = this.#checker.getResolvedSignature(node)?.getDeclaration();
    if (ts.isCallExpression(node) && declaration) {
      const { type: declared } = declaration;
      if (declared && (ts.isThisTypeNode(declared) || this.#isGiven(declared))) return false;
      const name = declaration.name?.getText() ?? '';
      if (CALLING_BACK.has(name) && node.arguments.some((argument) => this.#isFunction(argument))) return false;
    }
    return this.#isEmitter(this.#checker.getTypeAtLocation(node));
  }

  /** A value of a type that the caller brings along. */
  #isGiven(declared: ts.TypeNode): boolean {
    const type = this.#checker.getTypeFromTypeNode(declared);
    const parts = type.isUnionOrIntersection() ? type.types : [type];
    return parts.some(({ flags }) => flags & ts.TypeFlags.TypeParameter);
  }

  #isFunction(node: ts.Expression): boolean {
    return this.#checker.getTypeAtLocation(node).getCallSignatures().length > 0;
  }

  #isEmitter(type: ts.Type): boolean {
    if (type.isUnionOrIntersection()) return type.types.some((one) => this.#isEmitter(one));
    const names = this.#kinds(type);
    return names.includes('EventEmitter') && names[0] !== 'EventEmitter' && !names.some((name) => SILENT.has(name));
  }

  /** Names of a class or interface and of all that it extends. */
  #kinds(type: ts.Type): string[] {
    const symbol = type.getSymbol();
    if (!symbol) return [];
    const declared = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const bases = declared.isClassOrInterface() ? this.#checker.getBaseTypes(declared) : [];
    return [symbol.name, ...bases.flatMap((base) => this.#kinds(base))];
  }

  /** A timer that nobody can call off; those of `Timers` end with their owner. */
  #isTimer(node: ts.Expression): boolean {
    if (ts.isParenthesizedExpression(node)) return this.#isTimer(node.expression);
    if (!ts.isCallExpression(node)) return false;
    if (this.#checker.getTypeAtLocation(node).getSymbol()?.name === 'Timeout') {
      const callee = node.expression;
      // What is asked of one that somebody has is no timer more.
      if (!ts.isPropertyAccessExpression(callee)) return true;
      return /^(un)?ref$/.test(callee.name.text) ? this.#isTimer(callee.expression) : callee.name.text !== 'refresh';
    }
    const callee = node.expression;
    if (!ts.isPropertyAccessExpression(callee) || callee.name.text !== 'after') return false;
    return !/[tT]imers$/.test(callee.expression.getText());
  }
}

function isOwned(made: ts.Node, source: string): boolean {
  for (let node = made; node.parent; node = node.parent) {
    const { parent } = node;
    if (ts.isReturnStatement(parent) || ts.isYieldExpression(parent) || ts.isForOfStatement(parent)) return true;
    if (ts.isArrowFunction(parent) && parent.body === node) return true;
    if (ts.isAwaitExpression(parent) || ts.isPropertyAssignment(parent)) return true;
    if (ts.isCallExpression(parent)) {
      const callee = parent.expression;
      const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : callee.getText();
      if (node !== callee && (TAKERS.has(name) || (ts.isPropertyAccessExpression(callee) && name === 'write')))
        return true;
      if (node === callee && /^(on|once)$/.test(name) && /['"]error['"]/.test(parent.arguments[0]?.getText() ?? ''))
        return true;
    }
    const name =
      ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)
        ? parent.name.getText()
        : ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken
          ? parent.left.getText()
          : undefined;
    // A member of what somebody else has.
    if (name !== undefined) return /^(?!this\b)\w+\./.test(name) || isHeard(name, source);
    if (ts.isStatement(parent)) return false;
  }
  return false;
}

function isHeard(name: string, source: string): boolean {
  const own = `(?:this\\.)?${name.replace(/^this\./, '').replace(/[.#$]/g, '\\$&')}`;
  const listens = `${own}\\s*(?:\\.\\w+\\([^;]*?\\)\\s*)*\\.(?:on|once)\\(\\s*['"]error['"]`;
  const taken = `\\b(?:${[...TAKERS].join('|')})\\([^;]*?${own}\\b`;
  const read = `(?:\\bof|yield\\*|return)\\s+${own}\\b`;
  const member = `\\breturn\\b[^;]*[{,]\\s*${own}\\s*[,}]`;
  return new RegExp(`${listens}|${taken}|${read}|${member}`, 's').test(source);
}
