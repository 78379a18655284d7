// A cell is a module without exports whose top-level names outlive it: imports become dynamic, top-level declarations become
// properties of the global object, and the value of the last expression is the value of the cell.
import { parse } from 'acorn';

const OPTIONS = {
  ecmaVersion: 'latest',
  sourceType: 'module',
  allowAwaitOutsideFunction: true,
  allowReturnOutsideFunction: false,
  allowHashBang: true,
};

/** Script text that evaluates to a promise of the cell's value. Throws SyntaxError with the caller's line and column. */
export function toCell(source) {
  const program = parseCell(source);
  const edits = [];
  const hoisted = [];
  const globals = [];
  for (const [index, node] of program.body.entries()) {
    edit(node, index === program.body.length - 1, { source, edits, hoisted, globals });
  }
  let text = '';
  let at = 0;
  for (const { start, end, text: replacement } of edits) {
    text += source.slice(at, start) + replacement;
    at = end;
  }
  text += source.slice(at);
  const declared = globals.map(
    (name) => `if(!(${JSON.stringify(name)} in globalThis))globalThis[${JSON.stringify(name)}]=undefined;`,
  );
  // On one line before the caller's first, so that line numbers stay his.
  return `(async()=>{${declared.join('')}${hoisted.join('')}${text}\n})()`;
}

function parseCell(source) {
  try {
    return parse(source, OPTIONS);
  } catch (error) {
    // Sloppy code that is no module, e.g. with an octal literal.
    try {
      return parse(source, { ...OPTIONS, sourceType: 'script' });
    } catch {
      throw new SyntaxError(`${error.message}\n${lineOf(source, error.loc)}`);
    }
  }
}

function lineOf(source, loc) {
  if (!loc) return '';
  return `${source.split('\n')[loc.line - 1] ?? ''}\n${' '.repeat(loc.column)}^`;
}

function edit(node, last, { source, edits, hoisted, globals }) {
  const text = source.slice(node.start, node.end);
  const replace = (replacement) => edits.push({ start: node.start, end: node.end, text: replacement });
  switch (node.type) {
    case 'ImportDeclaration':
      return replace(importOf(node, globals));
    case 'VariableDeclaration':
      if (node.kind === 'using' || node.kind === 'await using') return;
      return replace(declarationOf(node, source, globals));
    case 'FunctionDeclaration':
      globals.push(node.id.name);
      hoisted.push(`globalThis[${JSON.stringify(node.id.name)}]=${node.id.name};`);
      return;
    case 'ClassDeclaration':
      globals.push(node.id.name);
      return replace(`;globalThis[${JSON.stringify(node.id.name)}]=${text};`);
    case 'ExportNamedDeclaration':
      if (node.declaration) {
        edits.push({ start: node.start, end: node.declaration.start, text: '' });
        return edit(node.declaration, false, { source, edits, hoisted, globals });
      }
      return replace(';');
    case 'ExportDefaultDeclaration':
      edits.push({ start: node.start, end: node.declaration.start, text: ';(' });
      edits.push({ start: node.declaration.end, end: node.end, text: ');' });
      return;
    case 'ExportAllDeclaration':
      return replace(';');
    case 'ExpressionStatement':
      if (last) replace(`return (${source.slice(node.expression.start, node.expression.end)}\n);`);
      return;
    default:
  }
}

function declarationOf(node, source, globals) {
  const parts = node.declarations.map(({ id, init }) => {
    namesOf(id, globals);
    const value = init ? source.slice(init.start, init.end) : 'undefined';
    return `(${source.slice(id.start, id.end)} = ${value})`;
  });
  return `;void (${parts.join(', ')});`;
}

function importOf(node, globals) {
  const from = JSON.stringify(node.source.value);
  const options = node.attributes?.length
    ? `, { with: { ${node.attributes.map((a) => `${JSON.stringify(a.key.name ?? a.key.value)}: ${JSON.stringify(a.value.value)}`).join(', ')} } }`
    : '';
  const loaded = `await import(${from}${options})`;
  const sets = node.specifiers.map((specifier) => {
    globals.push(specifier.local.name);
    const local = `globalThis[${JSON.stringify(specifier.local.name)}]`;
    if (specifier.type === 'ImportNamespaceSpecifier') return `${local}=m;`;
    const imported =
      specifier.type === 'ImportDefaultSpecifier' ? 'default' : (specifier.imported.name ?? specifier.imported.value);
    // Of a CommonJS module only some names are exports; the others are properties of what it exports.
    const name = JSON.stringify(imported);
    const none = JSON.stringify(`The module ${node.source.value} has no export named ${imported}.`);
    return `if(${name} in m)${local}=m[${name}];else if(m.default!=null&&${name} in Object(m.default))${local}=m.default[${name}];else throw new SyntaxError(${none});`;
  });
  return `;{const m=${loaded};${sets.join('')}};`;
}

function namesOf(pattern, into) {
  switch (pattern?.type) {
    case 'Identifier':
      into.push(pattern.name);
      return;
    case 'ObjectPattern':
      for (const property of pattern.properties)
        namesOf(property.type === 'RestElement' ? property.argument : property.value, into);
      return;
    case 'ArrayPattern':
      for (const element of pattern.elements) namesOf(element, into);
      return;
    case 'AssignmentPattern':
      namesOf(pattern.left, into);
      return;
    case 'RestElement':
      namesOf(pattern.argument, into);
  }
}
