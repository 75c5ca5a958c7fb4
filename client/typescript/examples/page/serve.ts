/**
 * Serves the page beside a running `hubbub up --dev`: serve FOLDER SHUFFLER [PORT]
 *
 * FOLDER is its .hubbub, SHUFFLER its address over HTTP. Reports come to this server and are passed on:
 * a browser knows the authority of a development's certificates as little as any stranger's.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const [folder, shuffler, port = "8000"] = process.argv.slice(2);
if (!folder || !shuffler) throw new Error("write: serve FOLDER SHUFFLER [PORT]");
const here = fileURLToPath(new URL("../../../examples/page/", import.meta.url));
const ca = await readFile(join(folder, "tls", "ca.pem"));
const { outputFiles } = await build({
  ...{ entryPoints: [join(here, "page.ts")], outdir: here, write: false },
  ...{ bundle: true, splitting: true, minify: true, format: "esm", target: "es2022" },
});
const scripts = new Map(
  outputFiles.map(({ path, contents }) => [path.slice(here.length), contents]),
);

const server = createServer((incoming, answer) => {
  if (incoming.method === "POST") {
    const { "content-type": type, "content-length": length } = incoming.headers;
    const headers = { "content-type": type, "content-length": length };
    const forwarded = request(
      new URL("/v1/reports", shuffler),
      { method: "POST", headers, ca },
      (reply) => {
        answer.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(answer);
      },
    );
    forwarded.on("error", () => answer.writeHead(502).end());
    incoming.pipe(forwarded);
    return;
  }
  const name = (incoming.url ?? "/").slice(1);
  const script = scripts.get(name);
  if (script) answer.setHeader("content-type", "text/javascript").end(script);
  else if (name === "app.hubbub")
    void readFile(join(folder, name)).then((content) => answer.end(content));
  else void readFile(join(here, "index.html")).then((content) => answer.end(content));
});
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  const listenPort = typeof address === "object" ? address?.port : undefined;
  console.log(`the page is at http://127.0.0.1:${listenPort ?? port}/`);
});
