// Bundles each as a page would, by one program: node bundle.js FOLDER MODULES NAME ...
// Prints the bytes after gzip of each one's entry and all that it imports statically, as JSON.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { normalize } from "node:path";
import { gzipSync } from "node:zlib";

const { build } = createRequire(new URL("../../client/typescript/", import.meta.url))("esbuild");
const [folder, modules, ...names] = process.argv.slice(2);
const sizes = {};
for (const name of names) {
  const { metafile } = await build({
    ...{ entryPoints: [`${name}.js`], outdir: `${folder}/${name}`, logLevel: "warning" },
    ...{ bundle: true, minify: true, splitting: true, metafile: true },
    ...{ format: "esm", target: "es2022", platform: "browser", nodePaths: [modules] },
  });
  const loaded = new Set(
    Object.keys(metafile.outputs).filter((path) => path.endsWith(`/${name}.js`)),
  );
  for (const path of loaded) {
    for (const { path: other, kind } of metafile.outputs[path].imports) {
      if (kind === "import-statement") loaded.add(normalize(other));
    }
  }
  sizes[name] = 0;
  for (const path of loaded) sizes[name] += gzipSync(await readFile(path), { level: 9 }).length;
}
console.log(JSON.stringify(sizes));
