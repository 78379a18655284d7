import ts from 'typescript';

const PLAIN = ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike | ts.TypeFlags.BigIntLike;
const NOTHING = ts.TypeFlags.Null | ts.TypeFlags.Undefined | ts.TypeFlags.Unknown;

/**
 * Casts in place of a shape (`stored-shape.ts`): JSON that is taken for a type, by `as`, by the type of what it is given to or by being opened
 * (`const { a } = JSON.parse(…)`); columns of rows that hold JSON and are typed by a word (`query<{ data: Kept }>`); and `as` on such a column
 * of which nothing was known. What may be any JSON (`DocumentValue`) is taken for nothing.
 */
export class StoredCasts {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  readonly #columns: ReadonlySet<string>;

  /** `columns`: names of those that hold JSON, in any table. */
  constructor(program: ts.Program, columns: ReadonlySet<string>) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#columns = columns;
  }

  /** As `line: what`. */
  in(path: string): string[] {
    const file = this.#program.getSourceFile(path);
    if (!file) throw new Error(`no source: ${path}`);
    const found: string[] = [];
    const tell = (node: ts.Node, what: string): void => {
      found.push(`${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}: ${what}`);
    };
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node)) {
        if (this.#parsesJson(node) && !this.#staysUnknown(node)) tell(node, 'JSON is taken for a type');
        for (const column of this.#typed(node)) tell(node, `the column ${column} is taken for a type`);
      }
      if (ts.isAsExpression(node) && this.#isColumn(node.expression))
        tell(node, `${node.expression.getText()} is cast`);
      ts.forEachChild(node, visit);
    };
    visit(file);
    return found;
  }

  #parsesJson({ expression }: ts.CallExpression): boolean {
    if (!ts.isPropertyAccessExpression(expression) || expression.name.text !== 'parse') return false;
    return this.#checker.getTypeAtLocation(expression.expression).getSymbol()?.name === 'JSON';
  }

  /** Goes on as a value of which nothing is known, or that may be any JSON. */
  #staysUnknown(call: ts.CallExpression): boolean {
    let node: ts.Expression = call;
    while (ts.isParenthesizedExpression(node.parent) || ts.isAwaitExpression(node.parent)) node = node.parent;
    const { parent } = node;
    // Read for the error alone.
    if (ts.isExpressionStatement(parent) || ts.isVoidExpression(parent)) return true;
    if (ts.isPropertyAccessExpression(parent)) return false;
    const type =
      ts.isAsExpression(parent) || (ts.isVariableDeclaration(parent) && parent.type)
        ? this.#checker.getTypeFromTypeNode(parent.type as ts.TypeNode)
        : ts.isVariableDeclaration(parent)
          ? undefined
          : this.#checker.getContextualType(node);
    return type !== undefined && isAnyJson(type);
  }

  /** Of a query for rows of a type: its columns that hold JSON, or come as objects, and are typed. */
  #typed(call: ts.CallExpression): string[] {
    const [row] = call.typeArguments ?? [];
    if (!row || !ts.isPropertyAccessExpression(call.expression) || call.expression.name.text !== 'query') return [];
    const members = this.#checker.getTypeFromTypeNode(row).getProperties();
    return members.flatMap((member) => {
      const type = this.#checker.getTypeOfSymbol(member);
      const json = this.#columns.has(member.name) && !(type.flags & (PLAIN | ts.TypeFlags.Unknown));
      return !json && this.#isPlain(type) ? [] : [member.name];
    });
  }

  /** As the driver reads it: a text, a number, a moment, bytes, or an array of such. */
  #isPlain(type: ts.Type): boolean {
    if (type.isUnion()) return type.types.every((one) => this.#isPlain(one));
    if (type.flags & (PLAIN | NOTHING)) return true;
    const name = type.getSymbol()?.name ?? '';
    if (/^(?:Date|Uint8Array|Buffer)$/.test(name)) return true;
    const [item] = this.#checker.isArrayType(type) ? this.#checker.getTypeArguments(type as ts.TypeReference) : [];
    return item !== undefined && this.#isPlain(item);
  }

  #isColumn(node: ts.Expression): boolean {
    const name = ts.isPropertyAccessExpression(node) ? node.name.text : ts.isIdentifier(node) ? node.text : '';
    if (!this.#columns.has(name)) return false;
    return !!(this.#checker.getTypeAtLocation(node).flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any));
  }
}

function isAnyJson(type: ts.Type): boolean {
  // `any` is what `Object` and `String` take.
  if (type.flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any)) return true;
  if (!type.isUnion()) return false;
  return [ts.TypeFlags.Null, ts.TypeFlags.StringLike, ts.TypeFlags.NumberLike, ts.TypeFlags.BooleanLike].every((flag) =>
    type.types.some(({ flags }) => flags & flag),
  );
}
