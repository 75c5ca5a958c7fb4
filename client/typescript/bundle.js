/**
 * The browser's bundle, and what a page loads of it: node bundle.js FOLDER
 *
 * Prints the bytes after gzip of the entry and all that it imports statically.
 */
import { readFile } from "node:fs/promises";
import { normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const [folder = "dist/browser"] = process.argv.slice(2);
// @noble/post-quantum brings older copies of curves and hashes, and makes key exchanges over curves
// that nothing here uses, without a mark that they may be left out.
const oneCopy = {
  name: "one-copy",
  setup: (own) => {
    const resolveDir = fileURLToPath(new URL(".", import.meta.url));
    own.onResolve({ filter: /^@noble\/(curves|hashes)\// }, ({ path, kind, pluginData }) =>
      pluginData ? undefined : own.resolve(path, { kind, resolveDir, pluginData: true }),
    );
    own.onLoad({ filter: /post-quantum\/hybrid\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const makers = /(?<!function )\b(QSF|createKitchenSink|ecdhKem)\(/g;
      return { contents: text.replace(makers, "/* @__PURE__ */ $1(") };
    });
  },
};
const shared = {
  outdir: folder,
  plugins: [oneCopy],
  ...{ bundle: true, minify: true, metafile: true, logLevel: "warning" },
  ...{ format: "esm", target: "es2022", platform: "browser", chunkNames: "[hash]" },
};
await build({ ...shared, entryPoints: { worker: "src/worker.ts" } });
// A page that shows a ledger has the client, and so its errors: they are no file of their own.
const errors = {
  name: "errors",
  setup: (own) => {
    own.onResolve({ filter: /\/errors\.js$/ }, () => ({ path: "./hubbub.js", external: true }));
  },
};
await build({ ...shared, plugins: [oneCopy, errors], entryPoints: { ledger: "src/ledger.ts" } });
const { metafile } = await build({
  ...shared,
  splitting: true,
  entryPoints: {
    hubbub: "src/index.ts",
    fallback: "src/transport/fallback.ts", // by its name, so that a test sees whether it is loaded
  },
});
const root = Object.keys(metafile.outputs).find((path) => path.endsWith("/hubbub.js"));
const loaded = new Set([root]);
for (const path of loaded) {
  for (const { path: other, kind } of metafile.outputs[path].imports) {
    if (kind === "import-statement") loaded.add(normalize(other));
  }
}
let size = 0;
for (const path of loaded) size += gzipSync(await readFile(path), { level: 9 }).length;
console.log(size);
