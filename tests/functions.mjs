// Prints [file, first line, name, lines] of every function of JavaScript files, named on the command line, as JSON. Read by the parser
// of the compiler that checks the page's types; its API is still called unstable, and the lock file keeps its version.
import { createRequire } from "node:module";
import { resolve } from "node:path";

const folder = resolve(import.meta.dirname, "../static");
const { API } = await import(createRequire(`${folder}/package.json`).resolve("typescript/unstable/sync"));

const files = process.argv.slice(2).map((file) => resolve(file));
const api = new API();
const snapshot = api.updateSnapshot({ openProject: `${folder}/tsconfig.json`, openFiles: files });
const found = [];
for (const file of files) {
  const source = snapshot.getDefaultProjectForFile(file).program.getSourceFile(file);
  const lineOf = (at) => source.text.slice(0, at).split("\n").length;
  const look = (node) => {
    if (node.body) {
      const first = lineOf(node.getStart(source));
      found.push([file, first, node.name?.text ?? node.parent.name?.text ?? "", lineOf(node.end) - first + 1]);
    }
    node.forEachChild(look);
  };
  look(source);
}
api.close();
console.log(JSON.stringify(found));
